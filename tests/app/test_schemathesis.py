"""schemathesis over the whole OpenAPI document: what it sends is answered as the document says."""

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from tests.app.conftest import KEY
from tests.process import PATIENCE, Process

pytestmark = pytest.mark.slow
document = json.loads(Path("docs/openapi.json").read_text(encoding="utf-8"))
for path in document["paths"].values():
    for operation in path.values():  # it cannot write NDJSON, which tests/app/test_ndjson.py has
        operation.get("requestBody", {"content": {}})["content"].pop("application/x-ndjson", None)
schema = schemathesis.openapi.from_dict(document)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]


@schema.parametrize()
@settings(
    max_examples=20,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_the_documents(case: schemathesis.Case[Any], process: Process) -> None:
    answer = case.call_and_validate(
        base_url=process.url(),
        headers={"Authorization": f"Bearer {KEY}"},
        checks=CHECKS,
        timeout=PATIENCE,
    )
    if answer.headers["content-type"] == ["application/json"]:
        json.loads(answer.content, parse_constant=pytest.fail)  # no NaN, no infinity
    if answer.status_code != 200:
        assert "error" in answer.json()
