"""The OpenAPI document says what the routes take and answer, errors included.

Every status that it names for a route with a body is provoked here. schemathesis goes over the whole of it.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks

from heedful.app.application import create_app
from heedful.app.settings import Settings
from tests.app.bodies import bodies, path_of
from tests.app.conftest import KEY, Serve, held, in_flight
from tests.app.posting import JSON, Client, app_of, bearer, error_of
from tests.process import PATIENCE, Process

COMMITTED: dict[str, Any] = json.loads(Path("docs/openapi.json").read_text(encoding="utf-8"))
DOCUMENT: dict[str, Any] = create_app(Settings(models=Path("nowhere"))).openapi()
OPERATIONS = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]
BODIES = bodies("two kids")


def takes(schema: dict[str, Any], body: object) -> bool:
    whole = {**schema, "components": DOCUMENT["components"]}
    return bool(jsonschema_rs.validator_for(whole).is_valid(body))


def test_the_committed_document_is_the_served_one_and_every_route_has_a_body() -> None:
    assert json.loads(json.dumps(DOCUMENT)) == COMMITTED, "run `make openapi`"
    posted = {path for path, operations in COMMITTED["paths"].items() if "post" in operations}
    assert {path for path in posted if "{version}" not in path} == {*BODIES, "/models/reload"}


def test_every_answer_has_a_schema_and_every_json_body_an_example() -> None:
    """Without a schema of a content, openapi-python-client's functions return None."""
    for operation in OPERATIONS:
        for response in operation["responses"].values():
            assert all(content.get("schema") for content in response["content"].values())
        body = operation.get("requestBody", {"content": {}})["content"]
        if "application/json" in body:
            assert takes(body["application/json"]["schema"], body["application/json"]["example"])
        if "application/x-ndjson" in body:
            line = body["application/x-ndjson"]["example"]
            assert json.loads(line) == body["application/json"]["example"] | {"id": 1}
            assert line.endswith("\n")


def test_generated_clients_can_be_made_of_it() -> None:
    """Generators fail on defaults that are never sent, and on values that differ only in case."""
    for name, field in (("Rank", "text"), ("Ranked", "document")):
        schema = DOCUMENT["components"]["schemas"][name]
        assert "default" not in schema["properties"][field]
        assert field not in schema["required"]
    enums = re.findall(r'"enum": (\[.*?\])', json.dumps(DOCUMENT))
    assert '["Left", "Right"]' in enums
    for values in map(json.loads, enums):
        assert len({value.lower() for value in values}) == len(values)
    ids = [operation["operationId"] for operation in OPERATIONS]
    assert len(ids) == len(set(ids))


@dataclass
class Services:
    """Clients of services in different states."""

    ready: Client
    idle: Client  # its models were never loaded; needs the key
    narrow: Client  # a body has ten bytes at most
    hasty: Client  # gives up after 50 ms
    broken: Client
    full: Client  # a queue of one, which is taken, and models that are held


@pytest.fixture(scope="module")
async def services(serve: Serve, client: Client) -> AsyncIterator[Services]:
    async with (
        serve(threads=1, max_queue=1, max_batch_inputs=1) as full,
        held(full) as holding,
        serve(start=False, api_key=KEY) as idle,
        serve(start=False, max_body_bytes=10) as narrow,
        serve(start=False, request_timeout=0.05) as hasty,
        serve(start=False) as broken,
    ):
        del app_of(broken).state.heedful
        waiting = asyncio.create_task(full.post("/embed", json=BODIES["/embed"]))
        await in_flight(holding, 1)
        yield Services(client, idle, narrow, hasty, broken, full)
        waiting.cancel()
        await asyncio.wait([waiting])


async def stuck() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


@pytest.mark.anyio
@pytest.mark.parametrize("path", BODIES)
async def test_every_route_answers_each_of_its_statuses(services: Services, path: str) -> None:
    body, answers = BODIES[path], dict[int, httpx.Response]()
    for status, client, content in (
        (200, services.ready, body),
        (400, services.ready, b"{"),
        (404, services.ready, {**body, "model": "bert"}),
        (413, services.narrow, b"{" * 11),
        (422, services.ready, {**body, "model": 3, "inputs": 3}),
        (429, services.full, body),
        (500, services.broken, body),
        (503, services.idle, body),
        (504, services.hasty, stuck()),
        (401, services.idle, body),
    ):
        sent: Any = json.dumps(content) if isinstance(content, dict) else content
        key = bearer(KEY) if status != 401 else {}
        url = path_of(path, "bert" if status == 404 else "tiny-flat")
        answer = answers[status] = await client.post(url, content=sent, headers=JSON | key)
        assert answer.status_code == status
        if status != 200:
            error_of(answer)
            assert ("Retry-After" in answer.headers) == (status == 429)
            assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert set(map(str, answers)) == DOCUMENT["paths"][path]["post"]["responses"].keys()


_json_alone = json.loads(json.dumps(COMMITTED))
for _path in _json_alone["paths"].values():
    for _operation in _path.values():  # it cannot write NDJSON, which tests/app/test_ndjson.py has
        _operation.get("requestBody", {"content": {}})["content"].pop("application/x-ndjson", None)
schema = schemathesis.openapi.from_dict(_json_alone)
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
]


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=20,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_what_schemathesis_sends_is_answered_as_the_document_says(
    case: schemathesis.Case[Any], process: Process
) -> None:
    answer = case.call_and_validate(
        base_url=process.url(), headers=bearer(KEY), checks=CHECKS, timeout=PATIENCE
    )
    if answer.headers["content-type"] == ["application/json"]:
        json.loads(answer.content, parse_constant=pytest.fail)  # no NaN, no infinity
    if answer.status_code != 200:
        assert "error" in answer.json()
