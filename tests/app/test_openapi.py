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

DOCUMENT: dict[str, Any] = create_app(Settings(models=Path("nowhere"))).openapi()
OPERATIONS = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]


def takes(schema: dict[str, Any], body: object) -> bool:
    whole = {**schema, "components": DOCUMENT["components"]}
    return bool(jsonschema_rs.validator_for(whole).is_valid(body))


def test_the_committed_document_is_the_served_one() -> None:
    committed = json.loads(Path("docs/openapi.json").read_text(encoding="utf-8"))
    assert committed == json.loads(json.dumps(DOCUMENT)), "run `make openapi`"


@pytest.mark.parametrize("path", bodies(""))
def test_no_text_and_no_list_of_inputs_may_be_empty_and_ndjson_is_where_it_is_taken(
    path: str,
) -> None:
    operation = DOCUMENT["paths"][path]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert takes(schema, bodies("a")[path])
    if path != INFER:  # its texts may be nested
        assert not takes(schema, bodies("")[path])
    if path != "/explain":  # it takes no list
        assert not takes(schema, bodies("a", count=0)[path])
    for part in (operation["requestBody"], operation["responses"]["200"]):
        assert ("application/x-ndjson" in part["content"]) == (path != INFER)


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
