from pathlib import Path

import pytest

from heedful.text.parse import Parser
from tests.builders import BuiltParser, build_parser


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> BuiltParser:
    """A spaCy pipeline on disk, trained for a moment: its trees are trees, no more."""
    folder: Path = tmp_path_factory.mktemp("pipeline") / "parser"
    return build_parser(folder)


@pytest.fixture(scope="session")
def parser(pipeline: BuiltParser) -> Parser:
    return Parser.load(pipeline.folder)
