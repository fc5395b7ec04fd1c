"""What the parser learns from, and that it learns; its full training is a command, not a test."""

import random
from pathlib import Path

import pytest
import spacy
import torch
from rich.console import Console
from spacy.tokens import Doc

from heedful.training.errors import DataMissing
from tests.builders import BuiltParser
from tools.parser import __main__ as tool
from tools.parser import corpus as corpora
from tools.parser import teacher, training, treebank
from tools.parser.corpus import ALL, CELLS, Corpus, Reader
from tools.parser.model import ArcParser
from tools.parser.teacher import UNKNOWN
from tools.parser.training import TABLES, Stage

CONLLU = """\
# text = Kids can't wash.
1\tKids\tkid\tNOUN\tNNS\t_\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\twash\twash\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# text = Big alot dog
1\tBig\tbig\tADJ\tJJ\t_\t4\tamod\t_\t_
2\ta\ta\tDET\tDT\t_\t3\tdet\t_\tSpaceAfter=No
3\tlot\tlot\tNOUN\tNN\t_\t4\tnmod\t_\t_
4\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_

"""
LABELS = ("ROOT", "advmod", "amod", "aux", "nmod", "nsubj", "punct")


@pytest.fixture(scope="session")
def gold(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    data = tmp_path_factory.mktemp("ud")
    (data / "en_ewt-ud-train.conllu").write_text(CONLLU)
    return treebank.sentences(data, "train")


@pytest.fixture(scope="session")
def corpus(gold: list[Doc]) -> Corpus:
    return corpora.gold(training.blank(), gold, LABELS)


def test_gold_trees_are_in_the_tokens_that_ship(gold: list[Doc], corpus: Corpus) -> None:
    with pytest.raises(DataMissing, match="UD_English-EWT"):
        treebank.sentences(Path("nowhere"), "train")
    assert corpus.lengths.tolist() == [5, 4]  # "alot" is parted by our rules
    assert corpus.heads[:, 0].tolist() == [4, 4, 4, 0, 4, 4, 3, 4, 0]
    assert (corpus.head_shares[:, 0] == ALL).all()
    assert not corpus.head_shares[:, 1:].any()
    names = [LABELS[i] for i in corpus.names[:, 0]]
    assert names == ["nsubj", "aux", "advmod", "ROOT", "punct", "amod", "ROOT", "nmod", "ROOT"]
    assert corpus.name_shares[6, 0] == 0  # its relation is none of LABELS
    _, joined = teacher.aligned(spacy.blank("en"), gold)
    assert (joined.words, joined.heads) == (["Big", "alot", "dog"], [3, UNKNOWN, 0])


def test_joined_texts_keep_their_trees_and_batches_hold_every_text(
    gold: list[Doc], corpus: Corpus
) -> None:
    def trees(docs: list[Doc]) -> list[tuple[str, int]]:
        return [(token.text, token.head.i - token.i) for doc in docs for token in doc]

    grouped = treebank.grouped(gold * 50, seed=1)
    assert len(grouped) < 100
    assert trees(grouped) == trees(gold * 50)
    batch = Reader(corpus, TABLES).batch([[0, 1], [1]])
    assert batch.heads[0, :, 0].tolist() == [4, 4, 4, 0, 4, 9, 8, 9, 0]
    assert batch.heads[1, :4, 0].tolist() == [4, 3, 4, 0]
    assert (batch.places[1, 4:] == 0).all()
    assert batch.places[0, 5:].tolist() == batch.places[1, :4].tolist()
    assert len(batch.rows) == 9  # each word once
    assert not batch.head_shares[1, 4:].any()
    joined = corpora.joined(corpus, [range(2)] * 3, random.Random(1))
    for batches, times in ((corpora.single(corpus), 1), (joined, 3)):
        texts = [text for some in batches for text in some]
        assert sorted(i for text in texts for i in text) == [0] * times + [1] * times
        for some in batches:
            longest = max(sum(corpus.lengths[i] for i in text) for text in some)
            assert longest * len(some) <= CELLS


def run(corpus: Corpus, file: Path, *stages: Stage) -> ArcParser:
    torch.manual_seed(1)
    model = ArcParser(tables=TABLES, relations=len(LABELS), width=16, embedding=8)
    training.train(
        model, corpus, corpus, corpus, seed=1, file=file, console=Console(), stages=stages
    )
    return model


def test_it_learns_and_goes_on_after_a_finished_stage(corpus: Corpus, tmp_path: Path) -> None:
    stages = (Stage(60, 1e-2, 0.0), Stage(40, 1e-3, 0.1))
    model = run(corpus, tmp_path / "whole.pt", *stages)
    assert training.accuracy(model, Reader(corpus, TABLES))[0] == 1.0
    run(corpus, tmp_path / "parts.pt", stages[0])
    again = run(corpus, tmp_path / "parts.pt", *stages)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value)


def test_the_teacher_learns(gold: list[Doc], tmp_path: Path) -> None:
    sentences = teacher.aligned(spacy.blank("en"), gold)
    learned = teacher.train([sentences] * 60, seed=1, file=tmp_path / "teacher.pt")
    with torch.inference_mode():
        _, arcs = learned([sentence.words for sentence in sentences])
    for row, sentence in enumerate(sentences):
        best = arcs[row, 1 : 1 + len(sentence)].argmax(-1).tolist()
        known = [(a, b) for a, b in zip(best, sentence.heads, strict=True) if b != UNKNOWN]
        assert all(found == right for found, right in known)


def test_scores_count_words_but_no_punctuation(pipeline: BuiltParser) -> None:
    nlp = spacy.load(pipeline.folder)
    parsed = nlp("Two kids wash their hands")
    words, heads = [t.text for t in parsed], [t.head.i for t in parsed]
    deps = [t.dep_ for t in parsed]

    def score(deps: list[str]) -> dict[str, float]:
        gold = Doc(nlp.vocab, words=words, spaces=[True] * 4 + [False], heads=heads, deps=deps)
        return tool.evaluate(nlp, [gold])

    assert score(deps) == {"uas": 1.0, "las": 1.0}
    assert score(["dep", *deps[1:]]) == {"uas": 1.0, "las": pytest.approx(0.8)}
    assert score([*deps[:4], "punct"])["uas"] == pytest.approx(8 / 9)  # 4 right, of 5 and of 4
