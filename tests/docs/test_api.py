"""docs/api.md: its examples, and those of the OpenAPI document, are answered as shown."""

import json
import os
import shutil

import httpx
import pytest

from heedful.app.routes.openapi_document import EXAMPLES
from tests.docs.examples import Example, alike, requests, run
from tests.process import ROOT

PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
REQUESTS = requests(PAGE)


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
