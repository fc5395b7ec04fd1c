"""Small bundles for the short runs."""

from pathlib import Path

import pytest

from tests.builders import build_models
from tests.faults.scenarios import Place


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    build_models(folder)
    return folder


@pytest.fixture
def place(tiny: Path, tmp_path: Path) -> Place:
    return Place(tiny, "tiny-sst2", tmp_path)
