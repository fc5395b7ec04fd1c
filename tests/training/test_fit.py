from pathlib import Path

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training import fit
from heedful.training.errors import DataError
from heedful.training.labelled_texts import Row, same

FILE, NONE = Path("my.csv"), Path()


def rows(labels: tuple[str, ...], count: int, width: int = 1) -> list[Row]:
    """`count` rows, labels in turn; each text occurs twice, with one label and other white space."""
    return [
        Row(
            i + 2,
            (f"text{' ' * (1 + i // len(labels) % 2)}{i // 2 // len(labels)} {i % len(labels)}",)
            * width,
            labels[i % len(labels)],
        )
        for i in range(count)
    ]


def test_equal_texts_stay_on_one_side() -> None:
    held = {i for i in range(400) if i % 40 < 4}
    task = fit.make_task(rows(("b", "a"), 400), FILE, words=(), seed=1, held=held)
    assert (task.kind, task.labels, task.name) == ("classification", ("a", "b"), "my")
    parts = [source.read(NONE) for source in (*task.train, task.dev, task.test)]
    assert [len(part) for part in parts] == [324, 36, 40]
    texts = [{same(one.texts) for one in part} for part in parts]
    assert sum(map(len, texts)) == 200 == len(set().union(*texts))
    assert parts == [
        source.read(NONE)
        for found in [fit.make_task(rows(("b", "a"), 400), FILE, words=(), seed=1, held=held)]
        for source in (*found.train, found.dev, found.test)
    ]


def test_pairs_of_one_first_text_stay_on_one_side() -> None:
    """As SNLI's: three hypotheses to a premise, one of each label."""
    pairs = [
        Row(i, (f"premise {i // 3}", f"hypothesis {i}"), NLI_LABELS[i % 3]) for i in range(300)
    ]
    held = set(range(30))
    task = fit.make_task(pairs, FILE, words=(), seed=1, held=held)
    sides = [
        {one.texts[0] for one in source.read(NONE)} for source in (*task.train, task.dev, task.test)
    ]
    assert list(map(len, sides)) == [81, 9, 10]
    assert len(set().union(*sides)) == 100


def test_in_the_end_all_rows_are_trained_on() -> None:
    task = fit.make_task(rows(("b", "a"), 400), FILE, words=(), seed=1)
    train, dev, test = (one.read(NONE) for one in (*task.train, task.dev, task.test))
    assert (len(train), len(dev), len(test)) == (400, 40, 0)


def test_too_few_rows() -> None:
    with pytest.raises(DataError, match=r"my\.csv: 4 rows of 2 labels are too few"):
        fit.make_task(rows(("a", "b"), 4), FILE, words=(), seed=1)


def test_common_words_are_background_texts() -> None:
    words = [f"w{i}" for i in range(250)]
    task = fit.make_task(rows(("a", "b"), 40), FILE, words=words, seed=1)
    texts = [one.texts[0] for source in task.background for one in source.read(NONE)]
    assert " ".join(texts).split() == words
    assert len(texts) == 3
