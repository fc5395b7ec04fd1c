"""Bundles that are exported once for all tests: tracing takes seconds."""

from pathlib import Path

import pytest
import torch

from heedful.export.bundle import export_bundle, make_bundle
from heedful.runtime.bundles.bundle import Bundle, read
from tests.export.trained import composed, trained
from tests.training.conftest import cache, config, data

__all__ = ["cache", "config", "data"]

torch.set_num_threads(1)  # small tensors: a second thread only waits for the first


@pytest.fixture(scope="session")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """MS-SAN with every prior, and the NLI head; as it is read from the disk."""
    out: Path = tmp_path_factory.mktemp("bundles") / "ms-san-nli"
    export_bundle(trained("nli"), out)
    return read(out)


@pytest.fixture(scope="session")
def plain() -> Bundle:
    """MS-SAN without distances, which reads neither tree nor alpha, and a classification head."""
    return make_bundle(trained("classification", word=False, dependency=False), "ms-san-plain")


@pytest.fixture(scope="session")
def open_words() -> Bundle:
    """MS-SAN that composes unlisted words, and a classification head."""
    return make_bundle(composed(), "open-words")
