"""What tests of several packages share: a parser, and the service as it is shipped, in a separate process."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings

from benchmarks.processes import bundles
from heedful.text.parse import Parser
from tests.builders import BuiltParser, build_models, build_parser
from tests.process import Process
from tests.shipped import BUNDLES, SHIPPED

settings.register_profile("no time limit", deadline=None)  # of an example, 200 ms by default
settings.load_profile("no time limit")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a slow test come first: a process takes a file at a time, and a long one at the end runs alone."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> BuiltParser:
    """A spaCy pipeline on disk, trained for a moment: its trees are trees, no more."""
    return build_parser(tmp_path_factory.mktemp("parsers") / "parser")


@pytest.fixture(scope="session")
def parser(pipeline: BuiltParser) -> Parser:
    """The same pipeline in this process."""
    return Parser.load(pipeline.folder)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiny bundles, which no test changes."""
    folder = tmp_path_factory.mktemp("models") / "bundles"
    build_models(folder)
    return folder


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a ready service on the bundles of the repository; one has OpenAI's name as well."""
    log = tmp_path_factory.mktemp("shipped") / "log"
    with bundles(SHIPPED, BUNDLES) as models:
        names = "text-embedding-3-small=ms-san-embed"
        flags = {"port": "0", "models": str(models), "aliases": names}
        with closing(Process(log, flags, {})) as process:
            yield process.ready()
