"""Every status that the OpenAPI document names, for every route, is provoked here.

The cases are read from the document: a route or a status that nothing here provokes fails.
"""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.runtime.service import Service
from tests.app.bodies import bodies, path_of
from tests.app.conftest import KEY, Serve, held
from tests.app.posting import JSON, Client, app_of, bearer, error_of
from tests.app.test_limits import in_flight

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
    async with contextlib.AsyncExitStack() as stack:

        async def also(**settings: Any) -> Client:
            opened: Client = await stack.enter_async_context(serve(**settings))
            return opened

        full = await also(models=bundles, threads=1, max_queue=1, max_batch_inputs=1, api_key=KEY)
        holding = await stack.enter_async_context(held(full))
        broken = await also(start=False, api_key=KEY)
        del app_of(broken).state.heedful
        yield Services(
            ready=client,
            idle=await also(start=False, api_key=KEY),
            narrow=await also(start=False, max_body_bytes=10),
            hasty=await also(start=False, request_timeout=0.05),
            broken=broken,
            full=full,
            held=holding,
            bundles=bundles,
        )


async def _ask(client: Client, method: str, path: str, **more: Any) -> httpx.Response:
    """A valid request, apart from `more` in its body."""
    body = {**BODIES[path], **more} if path in BODIES else None
    path = path_of(path, more.get("model", "tiny-flat"))
    return await client.request(method, path, json=body, headers=bearer(KEY))


async def _right(services: Services, method: str, path: str) -> httpx.Response:
    return await _ask(services.full if path == RELOAD else services.ready, method, path)


async def _wrong_types(services: Services, method: str, path: str) -> httpx.Response:
    if path == "/ready":
        return await services.ready.request(method, "/ready?deep=maybe")
    return await _ask(services.ready, method, path, model=3, inputs=3)


async def _without_key(services: Services, method: str, path: str) -> httpx.Response:
    return await services.idle.request(method, path_of(path))


async def _with_a_broken_bundle(services: Services, method: str, path: str) -> httpx.Response:
    graph = services.bundles / "tiny-nli" / "head.onnx"
    kept = graph.read_bytes()
    graph.write_bytes(b"no graph")
    try:
        return await _ask(services.full, method, path)
    finally:
        graph.write_bytes(kept)


async def _not_json(services: Services, method: str, path: str) -> httpx.Response:
    return await services.ready.request(method, path_of(path), content=b"{", headers=JSON)


async def _more_than_ten_bytes(services: Services, method: str, path: str) -> httpx.Response:
    return await services.narrow.request(method, path_of(path), content=b"{" * 11, headers=JSON)


async def _too_much(services: Services, method: str, path: str) -> httpx.Response:
    """The answer to a request that finds another in flight."""
    first = asyncio.create_task(_ask(services.full, "POST", "/embed"))
    await in_flight(services.held, 1)
    try:
        return await _ask(services.full, method, path)
    finally:
        first.cancel()
        await asyncio.wait([first])


async def _endless(services: Services, method: str, path: str) -> httpx.Response:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    return await services.hasty.request(method, path_of(path), content=stuck(), headers=JSON)


PROVOKE: dict[int, Callable[[Services, str, str], Awaitable[httpx.Response]]] = {
    200: _right,
    400: _not_json,
    401: _without_key,
    403: lambda services, *route: _ask(services.ready, *route),  # it has no key
    404: lambda services, *route: _ask(services.ready, *route, model="bert"),
    409: _with_a_broken_bundle,
    413: _more_than_ten_bytes,
    422: _wrong_types,
    429: _too_much,
    500: lambda services, *route: _ask(services.broken, *route),
    503: lambda services, *route: _ask(services.idle, *route),
    504: _endless,
}


@pytest.mark.parametrize(("method", "path", "status"), DOCUMENTED)
async def test_a_documented_status_is_provoked(
    services: Services, method: str, path: str, status: int
) -> None:
    answer = await PROVOKE[status](services, method, path)
    assert answer.status_code == status
    if status != 200:
        error_of(answer)
        assert ("Retry-After" in answer.headers) == (status == 429)
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)


def test_every_route_has_a_body() -> None:
    assert {path for method, path, _ in DOCUMENTED if method == "POST"} == {*BODIES, RELOAD}
