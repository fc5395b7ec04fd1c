"""docs/performance.md is what the records say."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import records
from benchmarks.records import RESULTS
from benchmarks.report import OTHER_MACHINE, page, verdict


def test_the_page_is_that_of_the_records() -> None:
    """After a measurement: `python -m benchmarks.report`."""
    assert Path("docs/performance.md").read_text(encoding="utf-8") == page(RESULTS)


@pytest.mark.parametrize(
    ("better", "figure", "said"),
    [
        ("more", 3.0, "goal reached"),
        ("more", 2.9, "minimum reached"),
        ("more", 1.8, "minimum reached"),
        ("more", 1.7, "**missed**"),
        ("less", 1.8, "goal reached"),
        ("less", 1.9, "minimum reached"),
        ("less", 3.0, "minimum reached"),
        ("less", 3.1, "**missed**"),
        ("less", None, "not measured"),
    ],
)
def test_a_verdict(better: str, figure: float | None, said: str) -> None:
    """Between the goal and the minimum a figure reaches the minimum."""
    goal, floor = (3, 1.8) if better == "more" else (1.8, 3)
    assert verdict({"better": better, "goal": goal, "floor": floor}, figure) == said


def test_a_record_becomes_a_section_and_a_goals_figure(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "goals.toml", tmp_path)
    (tmp_path / "layout.md").write_text("## By hand\n\nA note.\n")
    rows: list[dict[str, Any]] = [
        {"model": "a", "per s": 1234.56},
        {"model": "b", "per s": 0.98765},
    ]
    tables = (records.table("What it says.", rows), records.table("Nothing.", []))
    records.write("trial", "A trial", *tables, goals={"ready": 2.56789}, folder=tmp_path)
    text = page(tmp_path)
    assert "| 2 s | 3 s | 2.57 s | minimum reached |" in text
    assert "## A trial\n\n`python -m benchmarks.trial" in text
    assert "What it says.\n\n| model | per s |\n|---|---|\n| a | 1,235 |\n| b | 0.988 |\n" in text
    assert text.endswith("## By hand\n\nA note.\n")
    assert not list(tmp_path.glob(".*"))


def test_the_goals_have_the_figures_of_two_machines(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "goals.toml", tmp_path)
    (tmp_path / OTHER_MACHINE).mkdir()
    records.write("trial", "A trial", goals={"ready": 2.5}, folder=tmp_path)
    records.write("trial", "A trial", goals={"ready": 3.5}, folder=tmp_path / OTHER_MACHINE)
    text = page(tmp_path)
    assert "| 2 s | 3 s | 2.5 s | minimum reached | 3.5 s | **missed** |" in text
    assert text.count("## A trial") == 1


def test_a_figure_just_below_its_goal_does_not_look_like_it(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "goals.toml", tmp_path)
    records.write("trial", "A trial", goals={"ready": 2.0012}, folder=tmp_path)
    assert "| 2 s | 3 s | 2.001 s | minimum reached |" in page(tmp_path)


def test_every_goal_has_a_program_that_measures_it() -> None:
    """By its name, which a program writes."""
    import tomllib

    goals = tomllib.loads((RESULTS / "goals.toml").read_text(encoding="utf-8"))["goals"]
    sources = "".join(file.read_text() for file in Path("benchmarks").rglob("*.py"))
    assert all(f'"{goal["name"]}"' in sources for goal in goals)
