"""Requests over ASGI, and the checks of their answers that the tests of all routes share."""

from typing import Any, cast

import httpx
import numpy as np
import numpy.typing as npt
from fastapi import FastAPI

from heedful.app.state import AppState, state_of

Client = httpx.AsyncClient
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
TEXTS = [
    "two kids wash their hands",
    "the dog",
    "a man at the ballgame is not good",
    "bad",
    "kids and dogs wash hands, not bad at all!",
]


async def post(client: Client, path: str, **body: Any) -> httpx.Response:
    """The answer to a request that succeeds."""
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer


async def ask(client: Client, path: str, **body: Any) -> Any:
    """The JSON of the answer to a request that succeeds."""
    return (await post(client, path, **body)).json()


async def embed(client: Client, inputs: Any, **more: Any) -> npt.NDArray[Any]:
    return np.array(await ask(client, "/embed", inputs=inputs, **more))


def app_of(client: Client) -> FastAPI:
    assert isinstance(client._transport, httpx.ASGITransport)
    return cast(FastAPI, client._transport.app)


def state(client: Client) -> AppState:
    return state_of(app_of(client))


async def metrics(client: Client) -> str:
    """The page of metrics."""
    return (await client.get("/metrics")).text


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def check(
    answer: httpx.Response, status: int, code: str, param: str | None = None
) -> dict[str, Any]:
    """The answer is the envelope and nothing else; returns what is in it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"]
    assert "total;dur=" in answer.headers["Server-Timing"]
    fields = error_of(answer)
    assert fields["message"]
    assert "Traceback" not in answer.text
    assert (fields["code"], fields["param"]) == (code, param)
    return fields


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error in the envelope; on the Open Inference Protocol's routes `error` is its message."""
    body: dict[str, Any] = answer.json()
    path = answer.request.url.path
    if path == "/v2" or (path.startswith("/v2/") and path not in ("/v2/embed", "/v2/rerank")):
        assert isinstance(body["error"], str)
        fields = {"message": body.pop("error"), **body}
    else:
        assert list(body) == ["error"]
        fields = body["error"]
    assert list(fields) == ["message", "type", "param", "code"]
    return fields
