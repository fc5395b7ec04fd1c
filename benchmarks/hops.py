"""Counts the project's files and functions that a warm request runs through: python -m benchmarks.hops

One ASGI call in this process is profiled, without sockets, uvicorn and the cache. A switch is a call that goes from
one file to another. Comprehensions and lambdas are not counted: from Python 3.12 on most have no frame. Prints a
table, and with --path the functions in the order of their calls.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from starlette.types import ASGIApp, Message, Scope

import heedful
from heedful.app.application import create_app
from heedful.app.observability import logs
from heedful.app.settings import Settings
from heedful.app.state import state_of
from heedful.runtime.out_of_distribution import SECONDS

ROOT = f"{Path(heedful.__file__).parent}/"
REQUESTS = {
    "/embed": {"inputs": "Two kids at a ballgame wash their hands %d."},
    "/nli": {"premise": "A man sleeps %d.", "hypothesis": "Nobody is awake %d."},
    "/classify": {"inputs": "A gorgeous witty movie %d.", "model": "ms-san-sst2"},
}
WARM_CALLS = 5
TRIES = 3


async def post(app: ASGIApp, path: str, body: bytes) -> int:
    """The status of a request."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    statuses: list[int] = []

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def send(message: Message) -> None:
        if "status" in message:
            statuses.append(message["status"])

    headers = {
        "host": "heedful",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    await app(scope, receive, send)
    return statuses[0]


async def calls_of(app: ASGIApp, path: str, number: int) -> list[tuple[str, str]]:
    """File and function of every call of the project's code for a warm request, in order; its text has `number`."""

    def body(number: int) -> bytes:
        return json.dumps(REQUESTS[path]).replace("%d", str(number)).encode()

    for warm in range(WARM_CALLS):
        await post(app, path, body(warm))
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        is_function = not frame.f_code.co_name.startswith("<")
        if event == "call" and is_function and file.startswith(ROOT):
            calls.append((file.removeprefix(ROOT), frame.f_code.co_name))

    await asyncio.sleep(2 * SECONDS)  # until the warm calls' remaining work is done
    sys.setprofile(note)
    status = await post(app, path, body(number))
    sys.setprofile(None)
    assert status == 200, f"{path} answers {status}"
    return calls


def without_repeats(calls: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The calls without immediate repetitions."""
    previous = None
    for call in calls:
        if call != previous:
            yield call
        previous = call


async def measure(bundles: Path, path: bool, out: Console) -> None:
    app = create_app(Settings(models=bundles, cache_items=0))
    async with app.router.lifespan_context(app):
        await state_of(app).starting
        out.print("| request | files | functions | switches |\n|---|---|---|---|")
        orders = {}
        for route in REQUESTS:
            # The fewest of several tries, because the service's occasional other work is no part of a request.
            calls = min([await calls_of(app, route, 90 + i) for i in range(TRIES)], key=len)
            files = [file for file, _ in calls]
            switches = sum(a != b for a, b in pairwise(files))
            out.print(f"| {route} | {len(set(files))} | {len(set(calls))} | {switches} |")
            orders[route] = calls
        for route, calls in orders.items() if path else ():
            out.print(f"\n{route}")
            for file, function in without_repeats(calls):
                out.print(f"  {file}: {function}")


def main(
    bundles: Annotated[Path, typer.Option(help="The folder of bundles.")] = Path("bundles"),
    path: Annotated[bool, typer.Option(help="Print the calls in order.")] = False,
) -> None:
    """Count the files, functions and switches of a request's way."""
    logs.configure("text", "warning")
    asyncio.run(measure(bundles, path, Console(soft_wrap=True, highlight=False)))


if __name__ == "__main__":
    typer.run(main)
