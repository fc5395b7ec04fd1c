"""The service as it is shipped, in a separate process, for the tests of the whole."""

from collections.abc import Iterator

import pytest

from tests.process import Process


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a ready service on the bundles of the repository; one has OpenAI's name as well."""
    process = Process(
        tmp_path_factory.mktemp("shipped") / "log",
        {"port": "0", "aliases": "text-embedding-3-small=ms-san-embed"},
        {},
    )
    try:
        yield process.ready()
    finally:
        process.close()
