"""/ready?deep=1: the golden sentences on the live service, and what it says of those that moved."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.app.settings import Settings
from heedful.export.bundle_writer import write
from heedful.export.golden import SENTENCES, golden
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import GOLDEN
from heedful.text.parse import Parse, ParseJob, Parser
from tests.app.conftest import ask
from tests.builders import build_bundle, build_parser

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with golden vectors, two whose first tree was another, of which one reads none, and one without any."""
    folder = tmp_path_factory.mktemp("golden")
    built = build_parser(folder / "parser")
    parser = Parser.load(built.folder)

    def other(jobs: Sequence[ParseJob]) -> list[Parse]:
        first, *rest = parser.parse(jobs)
        return [replace(first, heads=np.full(len(first), len(first) - 1)), *rest]

    for name, parse, tree in (
        ("tiny-same", parser.parse, True),
        ("tiny-other", other, True),
        ("tiny-flat", other, False),
    ):
        build_bundle(folder, built, name=name, tree=tree)
        bundle = read(folder / name)
        files = {**bundle.files, GOLDEN: golden(bundle, parse).to_bytes()}
        write(folder / name, bundle.card.fields(), files)
    build_bundle(folder, built, name="tiny-bare")
    return folder


async def test_what_moved_is_named_by_the_live_service(folder: Path) -> None:
    settings = Settings(models=folder, threads=1)
    async with ask(settings) as client:
        assert (await client.get("/ready")).json() == {"status": "ready", "refused": []}
        known = (await client.get("/info")).json()["golden"]
        assert known["tiny-bare"] is None
        assert known["tiny-same"] < 1e-6  # looked at when it was loaded
        assert known["tiny-other"] < 1e-6  # with its own trees its vectors are right
        answer = await client.get("/ready?deep=1")
        assert answer.status_code == 503
        error = answer.json()["error"]
        assert error["code"] == "golden_moved"
        said = f"golden vectors: tiny-other: the tree of {SENTENCES[0]!r} is another"
        assert error["message"] == said
        page = (await client.get("/metrics")).text
        assert 'heedful_golden_deviation{model="tiny-same"}' in page
        assert 'heedful_golden_deviation{model="tiny-bare"}' not in page


async def test_nothing_has_moved(folder: Path, tmp_path: Path) -> None:
    for name in ("parser", "tiny-same"):
        (tmp_path / name).symlink_to(folder / name)
    async with ask(Settings(models=tmp_path, threads=1)) as client:
        for _ in range(2):  # the second within the interval: the same answer
            found = (await client.get("/ready?deep=1")).json()
            assert found["status"] == "ready"
            assert found["golden"]["tiny-same"] < 1e-6
