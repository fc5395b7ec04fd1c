"""What the arc parser learns from, and that it learns; its full training is a command, not a test."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from spacy.tokens import Doc

from heedful.models.arc_parser import ArcParser
from heedful.training import arc_corpus, arc_parser, soft_trees, tree_teacher, treebank
from heedful.training.arc_corpus import ALL, CELLS, Corpus, Reader
from heedful.training.arc_parser import Stage
from tests.training.test_parser import CONLLU

LABELS = ("ROOT", "advmod", "amod", "aux", "nmod", "nsubj", "punct")
TABLES = arc_parser.TABLES


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> list[Doc]:
    data = tmp_path_factory.mktemp("ud")
    (data / "en_ewt-ud-train.conllu").write_text(CONLLU)
    return treebank.sentences(data, "train")


@pytest.fixture(scope="module")
def corpus(gold: list[Doc]) -> Corpus:
    return arc_corpus.gold(arc_parser.blank(), gold, LABELS)


def test_gold_trees_are_in_the_tokens_that_ship(corpus: Corpus) -> None:
    assert corpus.lengths.tolist() == [5, 4]  # "alot" is parted by our rules
    assert corpus.heads[:, 0].tolist() == [4, 4, 4, 0, 4, 4, 3, 4, 0]
    assert (corpus.head_shares[:, 0] == ALL).all()
    assert not corpus.head_shares[:, 1:].any()
    names = [LABELS[i] for i in corpus.names[:, 0]]
    assert names == ["nsubj", "aux", "advmod", "ROOT", "punct", "amod", "ROOT", "nmod", "ROOT"]
    assert corpus.name_shares[6, 0] == 0  # its relation is none of LABELS


def test_joined_texts_keep_their_trees(corpus: Corpus) -> None:
    batch = Reader(corpus, TABLES).batch([[0, 1], [1]])
    assert batch.places.shape == (2, 9)
    assert batch.heads[0, :, 0].tolist() == [4, 4, 4, 0, 4, 9, 8, 9, 0]
    assert batch.heads[1, :4, 0].tolist() == [4, 3, 4, 0]
    assert (batch.places[1, 4:] == 0).all()
    assert batch.places[0, 5:].tolist() == batch.places[1, :4].tolist()
    assert len(batch.rows) == 9  # each word once
    assert not batch.head_shares[1, 4:].any()


def test_batches_hold_every_text(corpus: Corpus) -> None:
    for batches in (
        arc_corpus.single(corpus),
        arc_corpus.joined(corpus, [range(2)] * 3, random.Random(1)),
    ):
        times = 1 if batches == arc_corpus.single(corpus) else 3
        texts = [text for batch in batches for text in batch]
        assert sorted(i for text in texts for i in text) == [0] * times + [1] * times
        for batch in batches:
            longest = max(sum(corpus.lengths[i] for i in text) for text in batch)
            assert longest * len(batch) <= CELLS


def test_the_loss_is_a_cross_entropy_with_shares(corpus: Corpus) -> None:
    torch.manual_seed(1)
    scores = torch.randn(2, 3, 4)
    values = torch.tensor([[[1, 2], [0, 3], [0, 0]], [[3, 0], [2, 0], [1, 0]]])
    shares = torch.tensor([[[0.7, 0.3], [1, 0], [0, 0]], [[0.5, 0.5], [0, 0], [1, 0]]])
    found = arc_parser._cross_entropy(scores, values, shares)
    expected = 0.0
    for b in range(2):
        for i in range(3):
            row = np.exp(scores[b, i].numpy().astype(float))
            for k in range(2):
                expected -= float(shares[b, i, k]) * np.log(row[values[b, i, k]] / row.sum())
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def run(corpus: Corpus, file: Path, epochs: float) -> ArcParser:
    torch.manual_seed(1)
    model = ArcParser(tables=TABLES, relations=len(LABELS), width=16, embedding=8)
    stages = (Stage(epochs, 1e-2, 0.0), Stage(40, 1e-3, 0.1))
    arc_parser.train(
        model, corpus, corpus, corpus, seed=1, file=file, console=Console(), stages=stages
    )
    return model


def test_it_learns_and_what_is_done_is_kept(corpus: Corpus, tmp_path: Path) -> None:
    model = run(corpus, tmp_path / "arcs.pt", 60)
    assert arc_parser.accuracy(model, Reader(corpus, TABLES))[0] == 1.0
    again = run(corpus, tmp_path / "arcs.pt", 60)  # loads what is there
    for name, value in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value)


def test_a_broken_run_ends_as_a_whole_one(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(corpus, tmp_path / "whole.pt", 12)
    monkeypatch.setattr(arc_parser, "SECONDS_BETWEEN_CHECKPOINTS", -1)  # at each step
    learn, steps = arc_parser._Run._learn, 0

    def stop(self: arc_parser._Run, batch: arc_corpus.Batch) -> None:
        nonlocal steps
        steps += 1
        if steps == 7:
            raise KeyboardInterrupt
        learn(self, batch)

    monkeypatch.setattr(arc_parser._Run, "_learn", stop)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, tmp_path / "broken.pt", 12)
    monkeypatch.setattr(arc_parser, "SECONDS_BETWEEN_CHECKPOINTS", 60)
    model = run(corpus, tmp_path / "broken.pt", 12)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_soft_trees_are_what_the_teacher_finds_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = arc_parser.blank()
    torch.manual_seed(1)
    teacher = tree_teacher.TreeTeacher(LABELS).eval()
    monkeypatch.setattr(soft_trees, "PART", 2)
    texts = ["Kids can't wash.", "Big alot dog", "a  b", "Kids wash."]
    soft_trees.write(teacher, nlp, texts, tmp_path, Console())
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    soft_trees.write(teacher, nlp, texts, tmp_path, Console())
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    parts = soft_trees.load(tmp_path)
    assert [part.texts for part in parts] == [("Big alot dog", "Kids can't wash."), ("Kids wash.",)]
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        x, arcs = teacher([["Kids", "wash", "."]])
        names = teacher.relation_scores(x, arcs.argmax(-1))
    for scores, found, shares in (
        (arcs[0, 1:], parts[1].heads, parts[1].head_shares),
        (names[0, 1:], parts[1].names, parts[1].name_shares),
    ):
        best, places = scores.float().topk(4, -1)
        assert found.tolist() == places.tolist()
        assert np.abs(shares - ALL * best.softmax(-1).numpy()).max() < 1
    learned = arc_corpus.silver(nlp, parts)
    assert learned.lengths.tolist() == [4, 5, 3]
    assert learned.heads[9:, 0].tolist() == parts[1].heads[:, 0].tolist()
    assert (learned.heads[9:] <= 3).all()  # no governor after the text's end
    other = [
        soft_trees.SoftTrees(part.texts, part.lengths + 1, *([part.heads] * 4)) for part in parts
    ]
    with pytest.raises(ValueError, match="another tokenizer"):
        arc_corpus.silver(nlp, other)
