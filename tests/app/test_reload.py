"""Reloading over HTTP and by SIGHUP: who may, what is answered, where a refusal is seen."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from heedful.text.parse import fingerprint
from tests.app.conftest import Serve
from tests.app.test_errors import check
from tests.app.test_metrics import key, read
from tests.builders import BuiltParser, build_bundle

pytestmark = pytest.mark.anyio

KEY = {"Authorization": "Bearer sesame"}


@pytest.fixture(scope="module")
def folder(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reloaded") / "models"
    shutil.copytree(models, folder)
    return folder


@pytest.fixture(scope="module")
async def keyed(serve: Serve, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(models=folder, api_key="sesame") as client:
        yield client


async def test_without_a_key_it_is_refused_with_the_remedy(serve: Serve) -> None:
    async with serve(start=False) as client:
        error = check(await client.post("/models/reload"), 403, "api_key_not_set")
        assert "HEEDFUL_API_KEY" in error["message"]
        assert "SIGHUP" in error["message"]


async def test_a_refusal_is_seen_everywhere_until_it_is_mended(
    keyed: httpx.AsyncClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def versions(page: dict[tuple[str, frozenset[tuple[str, str]]], float]) -> set[str]:
        infos = [dict(labels) for name, labels in page if name == "heedful_model_info"]
        return {info["version"] for info in infos if info["model"] == "tiny-sst2"}

    parser = BuiltParser(folder / "parser", "en_tiny", fingerprint(folder / "parser"))
    before = versions(await read(keyed))
    build_bundle(folder, parser, name="tiny-sst2", alpha=0.25)
    whole = (folder / "tiny-sst2" / "head.onnx").read_bytes()
    (folder / "tiny-sst2" / "head.onnx").write_bytes(whole[:-1])
    error = check(await keyed.post("/models/reload", headers=KEY), 409, "bundle_refused")
    assert error["message"].startswith("bundle tiny-sst2: head.onnx: ")
    ready = await keyed.get("/ready")
    assert (ready.status_code, ready.json()["refused"]) == (200, [error["message"]])
    assert error["message"] in caplog.text
    page = await read(keyed)
    assert page[key("reloads_total", result="refused")] == 1
    assert versions(page) == before

    (folder / "tiny-sst2" / "head.onnx").write_bytes(whole)
    answer = await keyed.post("/models/reload", headers=KEY)
    assert answer.json() == {
        "loaded": ["tiny-sst2"],
        "unchanged": ["tiny-flat", "tiny-nli", "tiny-related"],
        "removed": [],
    }
    assert (await keyed.get("/ready")).json() == {"status": "ready", "refused": []}
    page = await read(keyed)
    assert page[key("reloads_total", result="ok")] == 1
    assert len(versions(page) - before) == 1 == len(versions(page))
