"""What the parser learns from, and that it learns; its full training is a command, not a test."""

import random
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from rich.console import Console
from spacy.tokens import Doc

from heedful.training.errors import DataMissing
from tests.builders import BuiltParser
from tests.tools.parser.conftest import LABELS
from tools.parser import __main__ as tool
from tools.parser import corpus as corpora
from tools.parser import soft_trees, teacher, training, treebank
from tools.parser.corpus import ALL, CELLS, Corpus, Reader
from tools.parser.model import ArcParser
from tools.parser.teacher import UNKNOWN
from tools.parser.training import TABLES, Stage


def test_grouping_keeps_every_sentence_and_its_tree(gold: list[Doc]) -> None:
    with pytest.raises(DataMissing, match="UD_English-EWT"):
        treebank.sentences(Path("nowhere"), "train")
    many = gold * 50
    joined = treebank.grouped(many, seed=1)
    assert len(joined) < len(many)

    def trees(docs: list[Doc]) -> list[tuple[str, int]]:
        return [(token.text, token.head.i - token.i) for doc in docs for token in doc]

    assert trees(joined) == trees(many)
    assert [len(doc) for doc in joined] != [len(doc) for doc in treebank.grouped(many, seed=2)]


def test_gold_trees_are_in_the_tokens_that_ship(gold: list[Doc], corpus: Corpus) -> None:
    assert corpus.lengths.tolist() == [5, 4]  # "alot" is parted by our rules
    assert corpus.heads[:, 0].tolist() == [4, 4, 4, 0, 4, 4, 3, 4, 0]
    assert (corpus.head_shares[:, 0] == ALL).all()
    assert not corpus.head_shares[:, 1:].any()
    names = [LABELS[i] for i in corpus.names[:, 0]]
    assert names == ["nsubj", "aux", "advmod", "ROOT", "punct", "amod", "ROOT", "nmod", "ROOT"]
    assert corpus.name_shares[6, 0] == 0  # its relation is none of LABELS
    _, joined = teacher.aligned(spacy.blank("en"), gold)
    assert (joined.words, joined.heads) == (["Big", "alot", "dog"], [3, UNKNOWN, 0])


def test_joined_texts_keep_their_trees(corpus: Corpus) -> None:
    batch = Reader(corpus, TABLES).batch([[0, 1], [1]])
    assert batch.heads[0, :, 0].tolist() == [4, 4, 4, 0, 4, 9, 8, 9, 0]
    assert batch.heads[1, :4, 0].tolist() == [4, 3, 4, 0]
    assert (batch.places[1, 4:] == 0).all()
    assert batch.places[0, 5:].tolist() == batch.places[1, :4].tolist()
    assert len(batch.rows) == 9  # each word once
    assert not batch.head_shares[1, 4:].any()


def test_batches_hold_every_text(corpus: Corpus) -> None:
    joined = corpora.joined(corpus, [range(2)] * 3, random.Random(1))
    for batches, times in ((corpora.single(corpus), 1), (joined, 3)):
        texts = [text for batch in batches for text in batch]
        assert sorted(i for text in texts for i in text) == [0] * times + [1] * times
        for batch in batches:
            longest = max(sum(corpus.lengths[i] for i in text) for text in batch)
            assert longest * len(batch) <= CELLS


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


def test_the_teacher_learns_and_a_stopped_one_goes_on(gold: list[Doc], tmp_path: Path) -> None:
    sentences = teacher.aligned(spacy.blank("en"), gold)
    learned = teacher.train([sentences] * 60, seed=1)
    with torch.inference_mode():
        _, arcs = learned([sentence.words for sentence in sentences])
    for row, sentence in enumerate(sentences):
        best = arcs[row, 1 : 1 + len(sentence)].argmax(-1).tolist()
        known = [(a, b) for a, b in zip(best, sentence.heads, strict=True) if b != UNKNOWN]
        assert all(found == right for found, right in known)
    file = tmp_path / "teacher.pt"
    whole = teacher.train([sentences] * 2, seed=1, file=file).state_dict()
    again = teacher.train([sentences] * 2, seed=1, file=file).state_dict()  # has nothing to do
    assert all(torch.equal(value, again[name]) for name, value in whole.items())


def test_soft_trees_are_what_the_teacher_finds_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = training.blank()
    torch.manual_seed(1)
    random_teacher = teacher.TreeTeacher(LABELS).eval()
    monkeypatch.setattr(soft_trees, "PART", 2)
    texts = ["Kids can't wash.", "Big alot dog", "a  b", "Kids wash."]
    for _ in range(2):  # what is there is not made again
        soft_trees.write(random_teacher, nlp, texts, tmp_path, Console())
        written = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    soft_trees.write(random_teacher, nlp, texts, tmp_path, Console())
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == written
    parts = soft_trees.load(tmp_path)
    assert [part.texts for part in parts] == [("Big alot dog", "Kids can't wash."), ("Kids wash.",)]
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        x, arcs = random_teacher([["Kids", "wash", "."]])
        names = random_teacher.relation_scores(x, arcs.argmax(-1))
    for scores, found, shares in (
        (arcs[0, 1:], parts[1].heads, parts[1].head_shares),
        (names[0, 1:], parts[1].names, parts[1].name_shares),
    ):
        best, places = scores.float().topk(4, -1)
        assert found.tolist() == places.tolist()
        assert np.abs(shares - ALL * best.softmax(-1).numpy()).max() < 1
    learned = corpora.silver(nlp, parts)
    assert learned.lengths.tolist() == [4, 5, 3]
    assert learned.heads[9:, 0].tolist() == parts[1].heads[:, 0].tolist()
    with pytest.raises(ValueError, match="another tokenizer"):
        corpora.silver(spacy.blank("en"), parts)


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
