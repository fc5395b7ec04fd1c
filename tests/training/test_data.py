from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from heedful.text.batch import collate
from heedful.text.parse import ParseJob, Parser
from heedful.text.vocab import Vocab
from heedful.training.data import Examples, subsample, vocabulary
from heedful.training.parses import CHUNK, Parsed, parse
from heedful.training.tasks.base import Example, Source
from tests.builders import BuiltParser
from tests.training.sentences import sentence

TEXTS = [
    "Two kids wash their hands.",
    "A dog",
    "\u00e9\u00e8  na\u00efve\n",
    "Two kids wash their hands.",
    "  ",
]


def parsed(pipeline: BuiltParser, cache: Path, texts: Sequence[str] = TEXTS) -> Parsed:
    return parse(
        texts,
        pipeline=str(pipeline.folder),
        fingerprint=pipeline.fingerprint,
        max_tokens=4,
        tree=True,
        cache_dir=cache,
    )


def test_parsed_once_and_kept(pipeline: BuiltParser, tmp_path: Path) -> None:
    first = parsed(pipeline, tmp_path)
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    again = parsed(pipeline, tmp_path)
    assert file.stat().st_mtime_ns == written
    assert again.tokens == first.tokens
    parsed(BuiltParser(pipeline.folder, pipeline.name, "0" * 64), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2  # another parser's are another file
    parser = Parser.load(pipeline.folder)
    vocab = Vocab(["kids", "hands"])
    rows = first.rows(vocab)
    assert "  " not in first.index  # holds no token
    for text, i in first.index.items():
        (expected,) = parser.parse([ParseJob(text, 4, tree=True)])
        found = sentence(rows, i)
        np.testing.assert_array_equal(found.heads, expected.heads)
        np.testing.assert_array_equal(found.ids, vocab.ids(expected.tokens))


def test_many_texts_are_parsed_in_processes(pipeline: BuiltParser, tmp_path: Path) -> None:
    texts = [f"{text} {i}" for i in range(CHUNK // 4 + 1) for text in TEXTS]
    together = parsed(pipeline, tmp_path, texts)
    for text in texts[:3]:
        alone = parsed(pipeline, tmp_path, [text])
        i, span = together.index[text], slice(*together.bounds[together.index[text] :][:2])
        assert together.tokens[span] == alone.tokens
        np.testing.assert_array_equal(together.heads[span], alone.heads)
        assert len(sentence(together.rows(Vocab([])), i)) == len(alone.tokens)


def test_vocabulary() -> None:
    known = {"movie", "plot", "rare"}

    def has_vector(words: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.array([word in known for word in words], dtype=bool)

    counts = Counter({"movie": 1, "zzz": 2, "yyy": 1})
    background = Counter({"plot": 3, "rare": 2, "zzz": 9, "www": 9})
    assert vocabulary(counts, background, has_vector, min_count=2, background_min_count=3).words[
        2:
    ] == ("zzz", "movie", "plot")
    assert vocabulary(counts, background, has_vector, min_count=1, background_min_count=None).words[
        2:
    ] == ("zzz", "movie", "yyy")


def test_examples_are_drawn_alike_each_time_and_their_sources_say_so() -> None:
    sources = [Source(name, "none", "whole", lambda data: []) for name in ("first", "second")]
    rows = [[Example((f"{name}{i}",), i) for i in range(50)] for name in "ab"]
    parts = list(zip(sources, rows, strict=True))
    taken = subsample(parts, 30)
    assert sum(len(examples) for _, examples in taken) == 30
    assert all(0 < len(examples) < 30 for _, examples in taken)
    assert all(one in whole for (_, some), whole in zip(taken, rows, strict=True) for one in some)
    assert [source.note for source, _ in taken] == ["whole; drawn at random from 50"] * 2
    assert [examples for _, examples in subsample(parts, 30)] == [examples for _, examples in taken]
    assert subsample(parts, None) is parts
    assert subsample(parts, 100) is parts


def test_batches_hold_every_example_once(pipeline: BuiltParser, cache: Path) -> None:
    pairs = [Example((a, b), i % 3) for i, a in enumerate(TEXTS[:3]) for b in TEXTS[:3]]
    texts = parsed(pipeline, cache)
    examples = Examples.of([*pairs, Example(("  ", "A dog"), 0)], texts.rows(Vocab(["a", "dog"])))
    assert len(examples) == len(pairs)  # the one without a token is left out

    def seen(rng: np.random.Generator | None) -> Counter[tuple[bytes, bytes, int]]:
        found: Counter[tuple[bytes, bytes, int]] = Counter()
        for (first, second), labels in examples.batches(2, rng):
            assert len(first.ids) == len(second.ids) == len(labels) <= 3
            for row, label in enumerate(labels):
                cut = [side.ids[row, : side.lengths[row]].tobytes() for side in (first, second)]
                found[cut[0], cut[1], int(label)] += 1
        return found

    assert seen(None) == seen(np.random.default_rng(1))
    assert sum(seen(None).values()) == len(pairs)


@pytest.mark.parametrize("composed", [0, 4096])
def test_a_batch_is_what_collate_makes_of_its_sentences(
    pipeline: BuiltParser, cache: Path, composed: int
) -> None:
    rows = parsed(pipeline, cache).rows(Vocab(["a", "dog", "kids"], composed))
    chosen = np.array([2, 0, 1, 0])
    found, expected = rows.batch(chosen, None), collate([sentence(rows, i) for i in chosen])
    for name in ("ids", "heads", "lengths", "features"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    if composed:
        every = rows.batch(chosen, lambda words: np.ones(words, bool))
        inside = np.arange(every.ids.shape[1]) < every.lengths[:, None]
        assert every.ids[inside].tolist() == list(range(-1, -1 - inside.sum(), -1))
        assert every.features is not None
        assert len(every.features) == inside.sum()


def test_a_batch_holds_one_length_or_mixed_lengths(pipeline: BuiltParser, cache: Path) -> None:
    texts = ("A dog", "A dog eats ham")
    rows = parsed(pipeline, cache, texts).rows(Vocab(["a"]))
    examples = Examples.of([Example((texts[i % 2],), i) for i in range(64)], rows)

    def of_one_length(*, mixed: bool) -> list[bool]:
        batches = replace(examples, mixed=mixed).batches(8, np.random.default_rng(0))
        return [len(set(side.lengths.tolist())) == 1 for (side,), _ in batches]

    assert all(of_one_length(mixed=False))
    assert not any(of_one_length(mixed=True))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9, 64 * 2 + 1])  # runs of 64 batches
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_last_row_alone_joins_the_batch_before_it(
    pipeline: BuiltParser, cache: Path, count: int, size: int
) -> None:
    examples = Examples.of(
        [Example((TEXTS[i % 3],), i) for i in range(count)],
        parsed(pipeline, cache).rows(Vocab(["a"])),
    )
    groups = [targets for _, targets in examples.batches(size, np.random.default_rng(0))]
    assert sorted(np.concatenate(groups)) == list(range(count))
    assert len(groups) == examples.steps(size)
    sizes = [len(group) for group in groups]
    assert max(sizes) <= size + 1
    assert sizes.count(size + 1) <= 1
    if size > 1 and count > 1:
        assert min(sizes) > 1
