"""`heedful distill`: a teacher's vectors of one's own texts in a bundle, by the command and the function."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import heedful
from heedful.cli import distill, distill_run
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.model_registry import check_parser
from heedful.text.parse import Parser
from heedful.training import taught_vectors, teacher_vectors, teachers
from heedful.training.config import CACHE
from heedful.training.errors import ConfigError, DataError
from heedful.training.taught_vectors import (
    Effort,
    divided,
    kept,
    make_configs,
    make_task,
    mixed,
)
from tests.asking import present
from tests.builders import WORDS, random_texts
from tests.shipped import BUNDLES
from tests.transformer import tiny_encoder

SIZE = 12


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any bundle or parser."""
    monkeypatch.chdir(tmp_path)


def test_a_bundle_gives_the_vectors_of_its_teacher(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taught_vectors, "FEWEST", 500)  # else it would train for a minute
    teacher = tiny_encoder(tmp_path / "encoder", SIZE)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 9))) for _ in range(400)]
    file = tmp_path / "texts.csv"
    file.write_text("".join(f"{text}\n" for text in ["review", *texts, " "]))
    out, runs = tmp_path / "bundles" / "mine", tmp_path / "runs"
    how: dict[str, Any] = {"text_column": "review", "effort": "quick", "threads": 1}
    distill.command(str(teacher), str(file), out, runs=runs, **how)
    card = read_card(out)
    facts = present(card.distilled)
    assert f"{out}: version {card.version}" in capsys.readouterr().out
    assert card.dimension == SIZE
    _, held = divided(texts, seed=1)
    with heedful.load(out) as model:
        ours = model.encode(held)
    theirs = teachers.load(str(teacher)).unit_vectors(held)
    cosines = (ours * theirs).sum(axis=1)
    assert_allclose(facts.cosine, cosines.mean(), atol=0.01)
    assert facts.cosine > 0.85
    given, new = (one.rows for one in card.training.data)
    assert given == len(set(texts)) - len(held)
    assert 0 < new <= 500 - given
    assert facts.bytes == pytest.approx(sum(one.stat().st_size for one in out.iterdir()), rel=0.01)
    check_parser(card, Parser.load(BUNDLES / "parser"))  # it serves beside the shipped bundles
    (run,) = runs.iterdir()  # from which the same command goes on
    assert (run / "run.json").is_file()


def test_a_file_of_vectors_is_a_teacher_of_the_texts_that_have_one(tmp_path: Path) -> None:
    vectors = np.array([[3, 4], [np.nan, 1], [0, 0], [0, 2]], np.float32)
    np.save(tmp_path / "api.npy", vectors)
    assert distill_run._keep("api.npy", ["a", "b", "c", "d"]) == ["a", "d"]
    found = teacher_vectors.stored_vectors("api.npy", ["d", "a"], CACHE, "cpu")
    assert_allclose(found, np.array([[0, 1], [0.6, 0.8]]), atol=1e-3)


@pytest.mark.parametrize(
    ("teacher", "count", "out", "error", "said"),
    [
        ("minilm", 300, "My Model", ConfigError, "names no bundle: use a-z, 0-9 and -"),
        ("minilm", 5, "mine", DataError, "different texts are too few: give 200 at least"),
        ("api.npy", 3, "mine", DataError, r"has the shape \(2, 2\), and there are 3 texts"),
        ("texts.npy", 3, "mine", DataError, "texts.npy is no array of vectors"),
    ],
)
def test_what_cannot_be_distilled_is_refused(
    tmp_path: Path, teacher: str, count: int, out: str, error: type[Exception], said: str
) -> None:
    np.save(tmp_path / "api.npy", np.eye(2))
    (tmp_path / "texts.npy").write_text("a\nb\n")
    with pytest.raises(error, match=said):
        heedful.distill(teacher, random_texts(count), tmp_path / out)


def test_dev_pairs_each_held_out_text_with_its_nearest_and_another() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((6, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    held = list("abcdef")
    task = make_task("mine", ["x"], ["y"], held, vectors, seed=1)
    assert [one.texts for part in task.train for one in part.read(Path())] == [("x",), ("y",)]
    pairs = task.dev.read(Path())
    for number, pair in enumerate(pairs):
        first, second = (held.index(text) for text in pair.texts)
        assert first == number % 6
        assert first != second
        assert pair.label == pytest.approx(float(vectors[first] @ vectors[second]), abs=1e-6)
        if number < 6:
            others = [float(vectors[first] @ vectors[j]) for j in range(6) if j != first]
            assert pair.label == pytest.approx(max(others), abs=1e-6)


def test_kept_neighbours_are_those_that_both_have() -> None:
    theirs = np.eye(24, dtype=np.float32)
    for i in range(24):
        theirs[i, i // 12 * 12] += 1  # two groups of twelve
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    assert kept(theirs, theirs) == pytest.approx((1, 1))
    turned = theirs[np.r_[12:24, 0:12]]  # the same groups, other vectors
    cosine, neighbours = kept(turned, theirs)
    assert cosine == pytest.approx(float((turned * theirs).sum(axis=1).mean()))
    assert neighbours > 0.8
    mixed = theirs[np.arange(24).reshape(2, 12).T.ravel()]
    assert kept(mixed, theirs)[1] < 0.7


@pytest.mark.parametrize(
    ("effort", "texts", "epochs"),
    [
        ("quick", 100_000, [3]),
        ("normal", 300_000, [5, 2]),
        ("high", 100_000, [21, 9]),
        ("normal", 10_000_000, [1]),
    ],
)
def test_effort_is_how_often_texts_are_read(effort: Effort, texts: int, epochs: list[int]) -> None:
    how: dict[str, Any] = {"words": "minilm", "size": 768, "seed": 1, "device": "cpu"}
    configs = make_configs("mine", "minilm", texts=texts, effort=effort, **how)
    assert [one.epochs for one in configs] == epochs
    assert {one.distillation.size for one in configs} == {768}
    assert [one.distillation.ranking > 0 for one in configs] == [False, True][: len(epochs)]
    last = [False, True][-len(epochs) :]  # trained as it is served
    assert [one.words.four_bits for one in configs] == last
    assert [one.distillation.dimensions for one in configs] == [
        (64, 128, 256, 512) * one for one in last
    ]


def test_mixed_texts_are_two_halves_or_a_few_words() -> None:
    texts = [" ".join(f"{row}-{i}" for i in range(6 + row)) for row in range(6)]
    texts += ["one two three four five six"[: 4 * row] for row in range(1, 7)] + ["7 " * 41]
    found = mixed(texts, "normal", seed=1)
    assert found == mixed(texts, "normal", seed=1) != mixed(texts, "normal", seed=2)
    assert len(set(found)) == len(found) > 300
    assert not set(found) & set(texts)
    listed = {text for text in found if text.replace(" ", "").isalpha()}
    assert {len(text.split()) for text in listed} >= {1, 2, 3, 4, 5}
    halves = [text for text in found if "-" in text and text[0].isdigit() and text[-1].isdigit()]
    assert len(halves) > 100
    for words in map(str.split, halves):
        [start] = (one.split() for one in texts if one.split()[:2] == words[:2])
        [end] = (one.split() for one in texts if one.split()[-2:] == words[-2:])
        cuts = range(2, len(words) - 1)
        assert any(words == [*start[:cut], *end[cut - len(words) :]] for cut in cuts)
    assert mixed(["日本語のテキスト"], "normal", seed=1) == []
    many = random_texts(taught_vectors.FEWEST)
    assert mixed(many, "quick", seed=1) == []
    assert len(mixed(many[:-100], "quick", seed=1)) in range(1, 101)
