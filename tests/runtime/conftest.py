"""A parser, bundles and a running service that the tests of the runtime share."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from heedful.runtime.service import Options, Service
from heedful.text.parse import Parser
from tests.builders import BuiltParser, build_models, build_parser

T = TypeVar("T")


@dataclass
class Running:
    """A started service and the event loop that it lives on."""

    service: Service
    _runner: asyncio.Runner

    def ask(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def built_parser(tmp_path_factory: pytest.TempPathFactory) -> BuiltParser:
    return build_parser(tmp_path_factory.mktemp("parsers") / "parser")


@pytest.fixture(scope="session")
def parser(built_parser: BuiltParser) -> Parser:
    """The same parser in this process, to compare with."""
    return Parser.load(built_parser.folder)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    build_models(folder)
    return folder


@pytest.fixture(scope="package")
def running(models: Path) -> Iterator[Running]:
    with asyncio.Runner() as runner:
        service = Service(Options(models, threads=1, max_queue=4096))
        runner.run(service.start())
        yield Running(service, runner)
        runner.run(service.stop(timeout=5))
