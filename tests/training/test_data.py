"""Texts that are parsed once, their vocabulary, splits and batches; pairs to tune on."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.arrays import Ints
from heedful.text.batch import collate
from heedful.text.parse import Parser
from heedful.text.pieces import Lexicon
from heedful.text.vocab import Vocab
from heedful.training import fit, tuning
from heedful.training.data import Examples, vocabulary
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Row, text_key
from heedful.training.parses import CHUNK, Parsed, parse
from heedful.training.prepare import neighbourhoods
from heedful.training.tasks.base import UNLABELLED, Example, Task
from tests.builders import BuiltParser, build_pieces
from tools.tasks.folds import ten_folds
from tools.tasks.labelled import held_out
from tools.tasks.splits import stratified_split

HANDS = "Two kids wash their hands."
TEXTS = [HANDS, "A dog", "\u00e9\u00e8  na\u00efve\n", HANDS, "  "]
FILE, NONE = Path("my.csv"), Path()


def parsed(pipeline: BuiltParser, cache: Path, texts: Sequence[str] = TEXTS) -> Parsed:
    return parse(
        texts,
        pipeline=str(pipeline.folder),
        fingerprint=pipeline.fingerprint,
        max_tokens=4,
        tree=True,
        cache_dir=cache,
    )


def tokens(found: Parsed, text: str) -> tuple[list[str], Ints]:
    """The tokens and the heads of a text."""
    span = slice(*found.bounds[found.index[text] :][:2])
    return found.tokens[span], found.heads[span].astype(np.int64)


def as_parsed_alone(found: Parsed, parser: Parser, texts: Sequence[str]) -> None:
    for text, one in zip(texts, parser.parse(texts, 4, tree=True), strict=True):
        words, heads = tokens(found, text)
        assert words == list(one.tokens)
        np.testing.assert_array_equal(heads, one.heads)


def test_parsed_once_and_kept(pipeline: BuiltParser, parser: Parser, tmp_path: Path) -> None:
    first = parsed(pipeline, tmp_path)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    assert parsed(pipeline, tmp_path).tokens == first.tokens
    assert file.stat().st_mtime_ns == written
    parsed(BuiltParser(pipeline.folder, pipeline.name, "0" * 64), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2  # another parser's are another file
    assert list(first.index) == TEXTS[:3]  # the last holds no token
    as_parsed_alone(first, parser, TEXTS[:3])


def test_many_texts_are_parsed_in_processes(
    pipeline: BuiltParser, parser: Parser, tmp_path: Path
) -> None:
    texts = [f"{text} {i}" for i in range(CHUNK // 4 + 1) for text in TEXTS]
    as_parsed_alone(parsed(pipeline, tmp_path, texts), parser, [*texts[:3], *texts[-9:]])


def test_vocabulary() -> None:
    known = {"movie", "plot", "rare"}

    def has_vector(words: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.array([word in known for word in words], dtype=bool)

    counts = Counter({"movie": 1, "zzz": 2, "yyy": 1})
    background = Counter({"plot": 3, "rare": 2, "zzz": 9, "www": 9})
    for least, most, expected in (
        (2, 3, ("zzz", "movie", "plot")),
        (1, None, ("zzz", "movie", "yyy")),
    ):
        limits = {"min_count": least, "background_min_count": most}
        found = vocabulary(counts, background, has_vector, **limits)  # type: ignore[arg-type]
        assert found.words[2:] == expected


@pytest.mark.parametrize(
    "lexicon",
    [Vocab(["a", "dog", "kids"]), Vocab(["a", "dog", "kids"], 4096), build_pieces()],
    ids=["words", "composed words", "pieces"],
)
def test_a_batch_is_what_serving_makes_of_its_texts(
    pipeline: BuiltParser, cache: Path, lexicon: Lexicon
) -> None:
    texts = parsed(pipeline, cache)
    rows = texts.rows(lexicon)
    chosen = [2, 0, 1, 0]
    found = rows.batch(np.array(chosen), None)
    expected = collate([lexicon.sentence(*tokens(texts, TEXTS[i])) for i in chosen])
    for name in ("ids", "heads", "lengths", "features", "pieces"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    if rows.spelling:
        every = rows.batch(np.array(chosen), lambda words: np.ones(words, bool))
        inside = np.arange(every.ids.shape[1]) < every.lengths[:, None]
        assert every.ids[inside].tolist() == list(range(-1, -1 - inside.sum(), -1))
        assert every.features is not None
        assert len(every.features) == inside.sum()


def test_a_text_of_too_many_pieces_is_left_out(pipeline: BuiltParser, cache: Path) -> None:
    texts = parsed(pipeline, cache)
    longest = max(len(build_pieces().sentence(*tokens(texts, text)).ids) for text in TEXTS[:3])
    for limit, count in ((longest, 3), (longest - 1, 2)):
        assert len(texts.rows(build_pieces(limit)).index) == count


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9, 64 * 2 + 1])  # runs of 64 batches
@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_hold_every_pair_once_and_a_last_one_alone_joins_the_batch_before_it(
    pipeline: BuiltParser, cache: Path, count: int, size: int
) -> None:
    vocab = Vocab(["kids", "dog"])
    texts = parsed(pipeline, cache)
    ids = {text: vocab.sentence(*tokens(texts, text)).ids.tolist() for text in TEXTS[:3]}
    pairs = [Example((TEXTS[i % 3], TEXTS[(i + 1) % 3]), i) for i in range(count)]
    examples = Examples.of([*pairs, Example(("  ", "A dog"), 0)], texts.rows(vocab))
    for rng in (None, np.random.default_rng(0)):
        sizes, seen = [], []
        for sides, targets in examples.batches(size, rng):
            sizes.append(len(targets))
            seen += targets.tolist()
            for row, target in enumerate(targets.astype(int)):
                for side, text in zip(sides, pairs[target].texts, strict=True):
                    assert side.ids[row, : side.lengths[row]].tolist() == ids[text]
        assert sorted(seen) == list(range(count))  # the one without a token is left out
    assert len(sizes) == examples.steps(size)
    assert max(sizes) <= size + 1
    assert sizes.count(size + 1) <= 1
    if size > 1 and count > 1:
        assert min(sizes) > 1


@pytest.mark.parametrize("equal", [False, True])
def test_groups_of_near_vectors_are_a_partition(equal: bool) -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(8), 40)
    vectors = rng.normal(size=(8, 16))[rows] * 5 + rng.normal(size=(320, 16))
    vectors = 0 * vectors if equal else vectors.astype(np.float16)
    groups = neighbourhoods(vectors, 50, np.random.default_rng(1))
    assert sorted(np.concatenate(groups).tolist()) == list(range(320))
    assert all(0 < len(group) <= 50 for group in groups)
    purity = np.mean([np.bincount(rows[group]).max() / len(group) for group in groups])
    assert equal or purity > 0.6, "chance is an eighth"


examples = st.lists(st.integers(0, 2), min_size=1, max_size=80).map(
    lambda labels: [Example((f"text {i}",), label) for i, label in enumerate(labels)]
)


@given(examples, st.lists(st.floats(0, 0.3), min_size=1, max_size=3), st.integers(0, 9))
def test_a_split_keeps_every_example_once_and_every_label_in_its_share(
    rows: list[Example], shares: list[float], seed: int
) -> None:
    parts = stratified_split(rows, shares, seed=seed)
    assert parts == stratified_split(rows, shares, seed=seed)
    assert Counter(one for part in parts for one in part) == Counter(rows)
    whole = Counter(one.label for one in rows)
    for part, share in zip(parts, shares, strict=False):
        for label, count in Counter(one.label for one in part).items():
            assert abs(count - share * whole[label]) <= 1


def test_held_out_is_dev_and_ten_folds_are_tested_on_once_each() -> None:
    rows = [Example((str(i),), i % 2) for i in range(103)]
    train, dev = held_out(lambda data: rows, 0.1)
    assert len(dev(NONE)) == 10
    assert sorted(train(NONE) + dev(NONE), key=rows.index) == rows
    _, *folds = ten_folds("toy", ("a", "b"), "none", "whole", lambda data: rows, background=())
    assert Counter(one for task in folds for one in task.test.read(NONE)) == Counter(rows)
    for task in folds:
        parts = splits(task)
        assert Counter(one for part in parts for one in part) == Counter(rows)
        assert [len(part) for part in parts][1:] == [pytest.approx(10, abs=1)] * 2


def splits(task: Task) -> list[list[Example]]:
    return [source.read(NONE) for source in (*task.train, task.dev, task.test)]


def labelled(count: int) -> list[Row]:
    """`count` rows, labels in turn; each text occurs twice, with one label and other white space."""
    texts = [f"text{' ' * (1 + i // 2 % 2)}{i // 4} {i % 2}" for i in range(count)]
    return [Row(i + 2, (text,), "ba"[i % 2]) for i, text in enumerate(texts)]


def test_equal_texts_of_a_users_file_stay_on_one_side() -> None:
    held = {i for i in range(400) if i % 40 < 4}
    task = fit.make_task(labelled(400), FILE, words=(), seed=1, held=held)
    assert (task.kind, task.labels, task.name) == ("classification", ("a", "b"), "my")
    parts = splits(task)
    assert [len(part) for part in parts] == [324, 36, 40]
    texts = [{text_key(one.texts) for one in part} for part in parts]
    assert sum(map(len, texts)) == 200 == len(set().union(*texts))
    all_rows = splits(fit.make_task(labelled(400), FILE, words=(), seed=1))
    assert [len(part) for part in all_rows] == [400, 40, 0]
    with pytest.raises(DataError, match=r"my\.csv: 4 rows of 2 labels are too few"):
        fit.make_task(labelled(4), FILE, words=(), seed=1)


def test_pairs_to_tune_on_of_one_first_text_are_held_out_together() -> None:
    pairs = [Example((f"q{i // 2}", f"a{i}"), UNLABELLED) for i in range(100)]
    learned, held = tuning.split(pairs, seed=1)
    assert len(held) == 10
    assert sorted(map(str, learned + held)) == sorted(map(str, pairs))
    assert not {one.texts[0] for one in learned} & {one.texts[0] for one in held}
    dev = tuning.make_task("mine", learned, held, seed=1).dev.read(Path())
    assert {one.label for one in dev} == {0.0, 1.0}
    assert {one.texts for one in dev if one.label} == {one.texts for one in held}
    assert not {one.texts for one in dev if not one.label} & {one.texts for one in pairs}
    with pytest.raises(DataError, match="1 different pairs are too few: give 50 at least"):
        tuning.distinct([Example(("a", "b"), 1.0)] * 60)


def test_what_is_held_out_is_found_among_all() -> None:
    pairs = [Example((f"q{i}", f"a{i}"), UNLABELLED) for i in range(20)]
    axes = dict(zip([f"a{i}" for i in range(20)], np.eye(20, dtype=np.float32), strict=True))
    vectors = axes | {f"q{i}": axes[f"a{i}"] for i in range(20)}
    assert tuning.score(vectors, pairs, pairs[:5]) == 1.0
    vectors["q0"] = 0.9 * axes["a1"] + 0.4 * axes["a0"]  # its own answer comes second
    assert tuning.score(vectors, pairs, pairs[:5]) == pytest.approx((4 + 1 / math.log2(3)) / 5)
    scored = [Example(one.texts, float(i)) for i, one in enumerate(pairs[:3])]
    vectors |= {"q1": axes["a0"], "q2": axes["a2"], "q0": axes["a0"]}
    assert tuning.score(vectors, scored, scored) == pytest.approx(0.0, abs=0.01)
