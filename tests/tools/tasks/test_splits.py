from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.training.tasks.base import Example
from tools.tasks.folds import FOLDS, ten_folds
from tools.tasks.labelled import held_out
from tools.tasks.splits import stratified_split

examples = st.lists(st.integers(0, 2), min_size=1, max_size=80).map(
    lambda labels: [Example((f"text {i}",), label) for i, label in enumerate(labels)]
)


@given(examples, st.lists(st.floats(0, 0.3), min_size=1, max_size=3), st.integers(0, 9))
def test_a_split_keeps_every_example_once_and_every_label_in_its_share(
    rows: list[Example], shares: list[float], seed: int
) -> None:
    parts = stratified_split(rows, shares, seed=seed)
    assert Counter(one for part in parts for one in part) == Counter(rows)
    assert all(part == sorted(part, key=rows.index) for part in parts)
    whole = Counter(one.label for one in rows)
    for part, share in zip(parts, shares, strict=False):
        for label, count in Counter(one.label for one in part).items():
            assert abs(count - share * whole[label]) <= 1


def test_a_seed_is_a_split() -> None:
    rows = [Example((str(i),), i % 2) for i in range(100)]
    assert stratified_split(rows, (0.5,), seed=3) == stratified_split(rows, (0.5,), seed=3)
    assert stratified_split(rows, (0.5,), seed=3) != stratified_split(rows, (0.5,), seed=4)


def test_a_group_stays_together() -> None:
    rows = [Example((f"{i % 20}",), i % 2) for i in range(100)]
    parts = stratified_split(rows, (0.3, 0.3), groups=[one.texts for one in rows])
    seen = [{one.texts for one in part} for part in parts]
    assert sum(map(len, seen)) == len(set().union(*seen))
    assert [len(part) for part in parts] == [30, 30, 40]


def test_held_out_is_dev_and_the_rest_is_train() -> None:
    rows = [Example((str(i),), 0) for i in range(50)]
    train, dev = held_out(lambda data: rows, 0.1)
    assert len(dev(Path())) == 5
    assert sorted(train(Path()) + dev(Path()), key=rows.index) == rows


def test_ten_folds_are_tested_on_once_each() -> None:
    rows = [Example((str(i),), i % 2) for i in range(103)]
    whole, *folds = ten_folds("toy", ("a", "b"), "none", "whole", lambda data: rows, background=())
    assert [task.name for task in folds] == [f"toy:{fold}" for fold in range(FOLDS)]
    tested = [one for task in folds for one in task.test.read(Path())]
    assert Counter(tested) == Counter(rows)
    for task in folds:
        parts = [source.read(Path()) for source in (*task.train, task.dev, task.test)]
        assert Counter(one for part in parts for one in part) == Counter(rows)
        assert [len(part) for part in parts][1:] == [pytest.approx(10, abs=1)] * 2
        assert task.test.name == "toy"  # the card names the dataset
    assert whole.test.read(Path()) == folds[0].test.read(Path())
