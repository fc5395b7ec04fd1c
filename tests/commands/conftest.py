from pathlib import Path

import pytest

from tests.builders import BuiltParser, build_parser


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> BuiltParser:
    return build_parser(tmp_path_factory.mktemp("parsers") / "parser")


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    """Word vectors of three values."""
    file = tmp_path / "glove.txt"
    words = {"good": 1, "great": 1, "fine": 1, "bad": -1, "awful": -1, "poor": -1, "film": 0}
    file.write_text(
        "".join(f"{word} {value} 0.5 0.{i}\n" for i, (word, value) in enumerate(words.items()))
    )
    return file
