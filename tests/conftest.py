"""The service as it is shipped, in a separate process, for the tests of the whole."""

from collections.abc import Iterator

import pytest

from tests.process import Process
from tests.shipped import link_shipped


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a ready service on the bundles of the repository; one has OpenAI's name as well."""
    folder = tmp_path_factory.mktemp("shipped")
    models = link_shipped(folder / "bundles")
    process = Process(
        folder / "log",
        {"port": "0", "models": str(models), "aliases": "text-embedding-3-small=ms-san-embed"},
        {},
    )
    try:
        yield process.ready()
    finally:
        process.close()
