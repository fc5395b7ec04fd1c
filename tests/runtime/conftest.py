"""Bundles and a running service that the tests of the runtime share."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from heedful.runtime.service import Options, Service
from tests.asking import embed

T = TypeVar("T")


@dataclass
class Running:
    """A started service and the event loop that it lives on."""

    service: Service
    _runner: asyncio.Runner

    def ask(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def embed(self, texts: Any, model: str | None = None, **fields: Any) -> Any:
        """The result, with its vectors (B, D) and counts."""
        return self.ask(embed(self.service, texts, model=model, **fields))


@contextmanager
def run(options: Options) -> Iterator[Running]:
    with asyncio.Runner() as runner:
        service = Service(options)
        runner.run(service.start())
        yield Running(service, runner)
        runner.run(service.stop(timeout=5))


@pytest.fixture(scope="package")
def running(models: Path) -> Iterator[Running]:
    with run(Options(models, threads=1, max_queue=4096)) as running:
        yield running
