"""/ready?deep=1: the golden sentences on the live service, and what it says of those that moved."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.export.bundle_writer import write
from heedful.export.golden import SENTENCES, golden
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import GOLDEN
from heedful.text.parse import Parse, ParseJob, Parser
from tests.app.conftest import Serve
from tests.app.posting import check, metrics
from tests.builders import BuiltParser, build_bundle

pytestmark = pytest.mark.anyio


async def test_what_moved_is_named_by_the_live_service(
    serve: Serve, tmp_path: Path, pipeline: BuiltParser, parser: Parser
) -> None:
    """Of golden vectors with another first tree only the model that reads trees is reported; a bundle may have none."""
    (tmp_path / "parser").symlink_to(pipeline.folder)

    def other(jobs: Sequence[ParseJob]) -> list[Parse]:
        first, *rest = parser.parse(jobs)
        return [replace(first, heads=np.full(len(first), len(first) - 1)), *rest]

    for name, parse, tree in (
        ("tiny-same", parser.parse, True),
        ("tiny-other", other, True),
        ("tiny-flat", other, False),
    ):
        build_bundle(tmp_path, pipeline, name=name, tree=tree)
        bundle = read(tmp_path / name)
        files = {**bundle.files, GOLDEN: golden(bundle, parse).to_bytes()}
        write(tmp_path / name, bundle.card.fields(), files)
    build_bundle(tmp_path, pipeline, name="tiny-bare")
    async with serve(models=tmp_path, threads=1) as client:
        assert (await client.get("/ready")).json() == {"status": "ready", "refused": []}
        known = (await client.get("/info")).json()["golden"]
        assert known["tiny-bare"] is None
        assert known["tiny-same"] < 1e-6  # looked at when it was loaded
        assert known["tiny-other"] < 1e-6  # with its own trees its vectors are right
        for _ in range(2):  # the second within the interval: the same answer
            error = check(await client.get("/ready?deep=1"), 503, "golden_moved")
            moved = f"golden vectors: tiny-other: the tree of {SENTENCES[0]!r} has changed"
            assert error["message"] == moved
        page = await metrics(client)
        assert 'heedful_golden_deviation{model="tiny-same"}' in page
        assert 'heedful_golden_deviation{model="tiny-bare"}' not in page
