from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training import tasks
from training.errors import ConfigError, DataError, DataMissing
from training.tasks.base import Example, records
from training.tasks.sst import nodes


def test_every_node_of_a_tree() -> None:
    found = list(nodes(r"(3 (2 It) (4 (2 \/) (4 (2 -LRB-) (4 lovely))))"))
    assert found == [
        ("It", 2),
        ("/", 2),
        ("(", 2),
        ("lovely", 4),
        ("( lovely", 4),
        ("/ ( lovely", 4),
        ("It / ( lovely", 3),
    ]


@pytest.mark.parametrize("broken", ["(3 (2 It)", "(3 It))", "It)"])
def test_a_broken_tree_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="bracket"):
        list(nodes(broken))


binary_trees = st.recursive(
    st.tuples(st.integers(0, 4), st.text("abc'.", min_size=1)),
    lambda child: st.tuples(st.integers(0, 4), child, child),
    max_leaves=12,
)


@given(binary_trees)
def test_a_tree_written_is_the_tree_read(tree: tuple[object, ...]) -> None:
    def write(node: tuple[object, ...]) -> str:
        label, *rest = node
        inner = " ".join(write(one) if isinstance(one, tuple) else str(one) for one in rest)
        return f"({label} {inner})"

    def walk(node: tuple[object, ...]) -> list[tuple[str, object]]:
        label, *rest = node
        if not isinstance(rest[0], tuple):
            return [(str(rest[0]), label)]
        below = [walk(child) for child in rest if isinstance(child, tuple)]
        whole = " ".join(found[-1][0] for found in below)
        return [*(one for found in below for one in found), (whole, label)]

    assert list(nodes(write(tree))) == walk(tree)


def test_sst2_leaves_the_neutral_ones_out(data: Path) -> None:
    task = tasks.get("sst2")
    dev = task.dev.read(data)
    assert [one.label for one in dev] == [1] * 4 + [0] * 4
    assert dev[0] == Example(("a movie is good",), 1)
    train = {one.texts[0] for one in task.train[0].read(data)}
    assert train == {t for one in dev for t in (one.texts[0], one.texts[0][8:], one.texts[0][11:])}
    assert len(tasks.get("sst5").dev.read(data)) == 9


def test_official_snli_without_its_undecided_pairs(data: Path) -> None:
    pairs = tasks.get("snli").test.read(data)
    assert pairs == [
        Example(("Two kids wash.", "Kids wash."), 0),
        Example(("A dog.", "A man."), 2),
    ]


def test_a_missing_file_is_named_with_its_origin(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"snli_1\.0_test\.jsonl.*nlp\.stanford\.edu"):
        tasks.get("snli").test.read(tmp_path)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('{"text": "a"}\n{"text"\n')
    with pytest.raises(DataError, match=r"x\.jsonl:2"):
        list(records(file))


def test_an_unknown_task_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="sst2"):
        tasks.get("sst3")
