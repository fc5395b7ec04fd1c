"""The OpenAPI says what the routes take and answer, errors included."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from heedful.app.application import create_app
from heedful.app.settings import Settings
from tests.app.bodies import INFER, bodies

WORK = tuple(bodies(""))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings(models=Path("nowhere"))).openapi()


def test_the_committed_document_is_the_served_one(document: dict[str, Any]) -> None:
    committed = json.loads(Path("docs/openapi.json").read_text(encoding="utf-8"))
    assert committed == json.loads(json.dumps(document)), "run `make openapi`"


@pytest.mark.parametrize("path", WORK)
def test_no_text_and_no_list_of_inputs_may_be_empty(document: dict[str, Any], path: str) -> None:
    content = document["paths"][path]["post"]["requestBody"]["content"]
    schema = {**content["application/json"]["schema"], "components": document["components"]}
    takes = jsonschema_rs.validator_for(schema).is_valid
    assert takes(bodies("a")[path])
    if path != INFER:  # its texts may be nested
        assert not takes(bodies("")[path])
    if path != "/explain":  # it takes no list
        assert not takes(bodies("a", count=0)[path])


def test_every_answer_has_a_schema(document: dict[str, Any]) -> None:
    """Where a content has none, openapi-python-client's functions return None."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                assert all(one.get("schema") for one in response["content"].values())


def test_every_json_body_has_an_example(document: dict[str, Any]) -> None:
    for operations in document["paths"].values():
        body = operations.get("post", {}).get("requestBody", {"content": {}})["content"]
        if "application/json" in body:
            schema = {**body["application/json"]["schema"], "components": document["components"]}
            assert jsonschema_rs.validator_for(schema).is_valid(body["application/json"]["example"])
        if "application/x-ndjson" in body:
            line = body["application/x-ndjson"]["example"]
            assert json.loads(line) == body["application/json"]["example"] | {"id": 1}
            assert line.endswith("\n")


@pytest.mark.parametrize("path", WORK)
def test_ndjson_is_where_it_is_taken(document: dict[str, Any], path: str) -> None:
    operation = document["paths"][path]["post"]
    for part in (operation["requestBody"], operation["responses"]["200"]):
        assert ("application/x-ndjson" in part["content"]) == (path != INFER)


def test_answers_have_no_defaults_that_are_never_sent(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, field in (("Rank", "text"), ("Ranked", "document")):
        assert "default" not in schemas[name]["properties"][field]
        assert field not in schemas[name]["required"]


def test_values_of_an_enum_differ_by_more_than_case(document: dict[str, Any]) -> None:
    """openapi-python-client writes nothing where two of them make one name."""
    enums = re.findall(r'"enum": (\[.*?\])', json.dumps(document))
    assert '["Left", "Right"]' in enums
    for values in map(json.loads, enums):
        assert len({value.lower() for value in values}) == len(values)


def test_operations_have_ids_of_their_own(document: dict[str, Any]) -> None:
    ids = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(ids) == len(set(ids))
