"""The arc parser against its loop-form reference, what it learns from, and that it learns.

Its full training is a command, not a test."""

from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from spacy.tokens import Doc

from heedful.training.errors import DataMissing
from tests.reference import arc_parser as reference
from tools.parser import __main__ as tool
from tools.parser import corpus as corpora
from tools.parser import pipeline as export
from tools.parser import teacher, training, treebank
from tools.parser.corpus import ALL, Corpus
from tools.parser.model import FAR, ArcParser
from tools.parser.teacher import UNKNOWN
from tools.parser.training import TABLES, Stage, Trained

SMALL = (11, 7, 9, 8)
ARC = 6
rows = st.tuples(*[st.integers(0, size - 1) for size in SMALL for _ in range(4)])
sentences = st.lists(rows, min_size=1, max_size=12)


@pytest.fixture(scope="module")
def model() -> ArcParser:
    torch.manual_seed(3)
    made = ArcParser(
        tables=SMALL, relations=5, width=8, embedding=4, arc=ARC, rotary=4, relation=7, dropout=0.3
    ).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.7)
    return made.eval()


def asked(texts: list[list[tuple[int, ...]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Every word of the texts has its own row."""
    places = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    seen = 0
    for row, text in enumerate(texts):
        places[row, : len(text)] = torch.arange(seen + 1, seen + len(text) + 1)
        seen += len(text)
    return torch.tensor([word for text in texts for word in text]), places


@settings(max_examples=25)
@given(st.lists(sentences, min_size=1, max_size=3))
def test_scores_are_the_references(model: ArcParser, texts: list[list[tuple[int, ...]]]) -> None:
    with torch.inference_mode():
        scores, dependents, governors = model(*asked(texts))
        heads = scores.argmax(-1)
        names = model.relations(dependents, governors, (heads - 1).clamp(min=0))
    w = {name: value.numpy() for name, value in model.state_dict().items()}
    for row, text in enumerate(texts):
        n = len(text)
        x = reference.read(w, text)
        expected = reference.arcs(w, x, ARC)
        found = scores[row, :n, : n + 1].numpy()
        possible = np.isfinite(expected)
        np.testing.assert_allclose(found[possible], expected[possible], atol=1e-4, rtol=1e-5)
        assert (found[~possible] == FAR).all()
        assert (scores[row, :n, n + 1 :] == FAR).all()
        for i in range(n):
            head = int(heads[row, i])
            if head:
                expected = reference.relation(w, x[i], x[head - 1])
                np.testing.assert_allclose(names[row, i].numpy(), expected, atol=1e-6)


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


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    data = tmp_path_factory.mktemp("ud")
    (data / "en_ewt-ud-train.conllu").write_text(CONLLU)
    return treebank.sentences(data, "train")


@pytest.fixture(scope="module")
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


def run(corpus: Corpus, file: Path, *stages: Stage) -> ArcParser:
    torch.manual_seed(1)
    model = ArcParser(tables=TABLES, relations=len(LABELS), width=16, embedding=8)
    training.train(
        model, corpus, corpus, corpus, seed=1, file=file, console=Console(), stages=stages
    )
    return model


def test_it_learns_and_goes_on_after_a_finished_stage(
    gold: list[Doc], corpus: Corpus, tmp_path: Path
) -> None:
    """That its parses are the same in any company: tests/text/test_arc_parser.py."""
    stages = (Stage(60, 1e-2, 0.0), Stage(40, 1e-3, 0.1))
    model = run(corpus, tmp_path / "whole.pt", *stages)
    run(corpus, tmp_path / "parts.pt", stages[0])
    again = run(corpus, tmp_path / "parts.pt", *stages)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value)

    made = Trained(model.eval(), LABELS, training.blank())
    export.pipeline(made, corpus).to_disk(tmp_path / "parser")
    assert tool.evaluate(spacy.load(tmp_path / "parser"), gold)["uas"] == 1.0
