"""docs/api.md: its routes, statuses and codes are the code's, its examples are answered as shown."""

import json
import os
import re
import shutil

import httpx
import pytest
from fastapi.routing import APIRoute

from heedful.app.application import ROUTERS
from heedful.app.errors import CODES, STATUS
from heedful.app.routes.openapi_document import EXAMPLES
from tests.docs.examples import Example, alike, examples, requests, run, table
from tests.process import ROOT

PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
REQUESTS = requests(PAGE)


def test_every_command_is_a_request_with_its_answer() -> None:
    assert examples(PAGE) == REQUESTS
    assert all(one.answer is not None for one in REQUESTS)


@pytest.mark.skipif(
    not shutil.which("curl") and "CI" not in os.environ, reason="curl is not installed"
)
@pytest.mark.parametrize("example", REQUESTS, ids=range(len(REQUESTS)))
def test_a_request_is_answered_as_shown(example: Example, shipped: str) -> None:
    answer = json.loads(run(example.command, url=shipped))
    assert alike(answer, example.answer), answer


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_of_the_openapi_document_is_answered(path: str, shipped: str) -> None:
    """It is what Swagger UI fills in."""
    version = httpx.get(f"{shipped}/v2/models/ms-san-sst2").json()["versions"][0]
    url = shipped + path.format(model="ms-san-sst2", version=version)
    answer = httpx.post(url, json=EXAMPLES[path])
    assert answer.status_code == 200, answer.text
    assert "X-Warning" not in answer.headers


def test_every_route_is_in_its_table() -> None:
    served = {
        f"{method} {route.path_format}"
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    named = {name for row in table(PAGE, "Routes") for name in re.findall(r"`([^`]+)`", row[0])}
    assert named == served | {"GET /docs", "GET /openapi.json"}


def test_every_status_is_in_its_table_with_the_codes_of_its_errors() -> None:
    rows = {int(cells[0]): re.findall(r"`(\w+)`", cells[2]) for cells in table(PAGE, "Errors")}
    codes = {**{error.code: status for error, status in STATUS.items()}, **CODES}
    assert set(rows) == set(codes.values())
    for code, status in codes.items():
        assert code in rows[status]
