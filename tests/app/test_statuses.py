"""Every status that the OpenAPI document names, for every route, is provoked here; and what the limits do.

The cases are read from the document: a route or a status that nothing here provokes fails.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.runtime.inference import Inference
from heedful.runtime.service import Service
from tests.app.bodies import bodies, path_of
from tests.app.conftest import KEY, Serve, held
from tests.app.posting import JSON, NDJSON, Client, app_of, bearer, check, error_of, post
from tests.process import PATIENCE

pytestmark = pytest.mark.anyio
DOCUMENT = json.loads(Path("docs/openapi.json").read_text())
DOCUMENTED = [
    (method.upper(), path, int(status))
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    for status in operation["responses"]
    if "{version}" not in path  # tests/app/test_v2.py has them
]
BODIES = bodies("two kids")
RELOAD = "/models/reload"


@dataclass
class Services:
    """Clients of services in different states."""

    ready: Client
    idle: Client  # its models were never loaded; needs the key
    narrow: Client  # a body has ten bytes at most
    hasty: Client  # gives up after 50 ms
    broken: Client
    full: Client  # a queue of one and models that are held; needs the key
    held: Service  # of `full`
    bundles: Path  # of `full`


@pytest.fixture(scope="module")
async def services(
    serve: Serve, client: Client, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Services]:
    bundles = tmp_path_factory.mktemp("statuses") / "bundles"
    shutil.copytree(models, bundles)
    async with (
        serve(models=bundles, threads=1, max_queue=1, max_batch_inputs=1, api_key=KEY) as full,
        held(full) as holding,
        serve(start=False, api_key=KEY) as idle,
        serve(start=False, max_body_bytes=10) as narrow,
        serve(start=False, request_timeout=0.05) as hasty,
        serve(start=False, api_key=KEY) as broken,
    ):
        del app_of(broken).state.heedful
        yield Services(client, idle, narrow, hasty, broken, full, holding, bundles)


async def ask(client: Client, method: str, path: str, **more: Any) -> httpx.Response:
    """A valid request, apart from `more` in its body."""
    body = {**BODIES[path], **more} if path in BODIES else None
    path = path_of(path, more.get("model", "tiny-flat"))
    return await client.request(method, path, json=body, headers=bearer(KEY))


async def stuck() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


async def provoke(services: Services, method: str, path: str, status: int) -> httpx.Response:
    async def send(client: Client, content: Any) -> httpx.Response:
        return await client.request(method, path_of(path), content=content, headers=JSON)

    ready, full, graph = services.ready, services.full, services.bundles / "tiny-nli/head.onnx"
    match status:
        case 400:
            return await send(ready, b"{")
        case 401:
            return await services.idle.request(method, path_of(path))
        case 404:
            return await ask(ready, method, path, model="bert")
        case 409:
            kept = graph.read_bytes()
            graph.write_bytes(b"no graph")
            refused = await ask(full, method, path)
            graph.write_bytes(kept)
            return refused
        case 413:
            return await send(services.narrow, b"{" * 11)
        case 422 if path == "/ready":
            return await ready.request(method, "/ready?deep=maybe")
        case 422:
            return await ask(ready, method, path, model=3, inputs=3)
        case 429:
            first = asyncio.create_task(ask(full, "POST", "/embed"))
            await in_flight(services.held, 1)
            refused = await ask(full, method, path)
            first.cancel()
            await asyncio.wait([first])
            return refused
        case 500:
            return await ask(services.broken, method, path)
        case 503:
            return await ask(services.idle, method, path)
        case 504:
            return await send(services.hasty, stuck())
    return await ask(full if (status, path) == (200, RELOAD) else ready, method, path)


@pytest.mark.parametrize(("method", "path", "status"), DOCUMENTED)
async def test_a_documented_status_is_provoked(
    services: Services, method: str, path: str, status: int
) -> None:
    answer = await provoke(services, method, path, status)
    assert answer.status_code == status
    if status != 200:
        error_of(answer)
        assert ("Retry-After" in answer.headers) == (status == 429)
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)


def test_every_route_has_a_body() -> None:
    assert {path for method, path, _ in DOCUMENTED if method == "POST"} == {*BODIES, RELOAD}


BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}  # a model that needs the tree
ORIGIN, OTHER = "https://a.example", "https://b.example"
SHOWN = {"X-Dtype", "X-Ignored-Fields", "X-Shape", "X-Truncated", "X-Warning", "X-Windows"}


async def in_flight(service: Service, inputs: int = 2) -> None:
    """Wait until that many inputs are in flight, by default both of BODY."""
    async with asyncio.timeout(PATIENCE):
        while service._engine.in_flight < inputs:
            await asyncio.sleep(0)


@pytest.fixture(scope="module")
async def tight(serve: Serve) -> AsyncIterator[Client]:
    """A service with a queue of two inputs and two seconds."""
    limits = {"threads": 1, "max_queue": 2, "max_batch_inputs": 2, "request_timeout": 2}
    # No cache: it would answer while the models are held.
    async with serve(cache_items=0, cors_origins=(ORIGIN,), **limits) as client:
        yield client


async def test_504_at_the_time_limit_and_the_work_is_dropped(tight: Client) -> None:
    async with held(tight) as service:
        answer, lines = await asyncio.gather(
            tight.post("/embed", json=BODY), tight.post("/embed", json=BODY, headers=NDJSON)
        )
        error = check(answer, 504, "timeout")
        assert error["type"] == "timeout_error"
        assert "within 2 s" in error["message"]
        assert "within 2 s" in lines.json()["error"]["message"]
        # Its inputs have left the queue: the next one is in flight, and not refused.
        waiting = asyncio.create_task(tight.post("/embed", json=BODY))
        await in_flight(service)
    assert (await waiting).status_code == 200


async def test_429_refuses_the_whole_request_and_says_when_to_return(tight: Client) -> None:
    """Each document of a rerank takes a place."""
    documents = {"query": "a", "documents": ["b", "c"], "model": "tiny-nli"}
    single = {**BODY, "inputs": "c"}
    for first, inputs, path, body in (
        (BODY, 2, "/embed", single),
        (single, 1, "/v1/rerank", documents),
    ):
        async with held(tight) as service:
            waiting = asyncio.create_task(tight.post("/embed", json=first))
            await in_flight(service, inputs)
            answer = await tight.post(path, json=body)
            assert check(answer, 429, "overloaded")["type"] == "rate_limit_error"
            assert int(answer.headers["Retry-After"]) >= 1
        assert (await waiting).status_code == 200
        await post(tight, path, **body)


async def test_browsers_may_call_from_the_origins_that_are_set(tight: Client) -> None:
    """A preflight that is refused gets the envelope."""
    for origin, allowed in ((ORIGIN, True), (OTHER, False)):
        answer = await tight.post("/embed", json={"inputs": ""}, headers={"Origin": origin})
        assert answer.status_code == 422
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
        if allowed:
            assert set(answer.headers["Access-Control-Expose-Headers"].split(", ")) >= SHOWN
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = await tight.options("/embed", headers=headers)
        assert "Origin" in answer.headers["Vary"]
        if allowed:
            assert answer.status_code == 200
        else:
            message = check(answer, 400, "cors_refused")["message"]
            assert "origin" in message
            assert "HEEDFUL_CORS_ORIGINS" in message
            assert "Access-Control-Allow-Origin" not in answer.headers


KEYS = '[page]\nkey = "page"\n\n[import]\nkey = "import"\nclass = "bulk"\n'


async def test_bulk_requests_are_told_from_interactive_ones(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is bulk by its header or its key's class, also as NDJSON."""
    noted: list[bool] = []
    bind = Service.bind

    def noting(*args: Any, bulk: bool, **options: Any) -> Inference:
        noted.append(bulk)
        return bind(*args, bulk=bulk, **options)

    monkeypatch.setattr(Service, "bind", noting)
    (tmp_path / "keys.toml").write_text(KEYS)
    page, importing, bulk = bearer("page"), bearer("import"), {"X-Priority": "bulk"}
    async with serve(api_keys=tmp_path / "keys.toml") as client:
        for headers in (page, page | bulk, importing):
            for media in ({}, NDJSON):
                answer = await client.post("/embed", json=BODY, headers=headers | media)
                assert answer.status_code == 200
    assert noted == [False, False, True, True, True, True]
