"""The examples of README, docs/api.md, docs/clients.md and the OpenAPI document run, and are answered as shown."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from heedful.app.routes.openapi_document import EXAMPLES
from tests.docs.examples import Example, alike, examples, requests, run
from tests.process import ROOT, output
from tests.shipped import SHIPPED
from tests.writing import put, table

README, API, CLIENTS = (
    (ROOT / page).read_text(encoding="utf-8")
    for page in ("README.md", "docs/api.md", "docs/clients.md")
)
REQUESTS = [
    pytest.param(example, id=f"{name}-{number}")
    for name, page in (("README", README), ("api", API))
    for number, example in enumerate(requests(page))
]
NOT_RUN = ("make serve\n", "pip install ")
"""Beginnings: the fixture `shipped` is the service that the first starts, tests/test_serving_install.py installs."""
TOOLS = [
    example for example in examples(README) if not example.command.startswith(("curl", *NOT_RUN))
]


def python_of(page: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(code)


@pytest.mark.skipif(
    not shutil.which("curl") and "CI" not in os.environ, reason="curl is not installed"
)
@pytest.mark.parametrize("example", REQUESTS)
def test_a_request_is_answered_as_shown(example: Example, shipped: str) -> None:
    answer = json.loads(run(example.command, url=shipped))
    assert example.answer is not None
    assert alike(answer, example.answer), answer


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_of_the_openapi_document_is_answered(path: str, shipped: str) -> None:
    """It is what Swagger UI fills in."""
    version = httpx.get(f"{shipped}/v2/models/ms-san-sst2").json()["versions"][0]
    url = shipped + path.format(model="ms-san-sst2", version=version)
    answer = httpx.post(url, json=EXAMPLES[path])
    assert answer.status_code == 200, answer.text
    assert "X-Warning" not in answer.headers


def test_openais_client_runs(shipped: str) -> None:
    names: dict[str, object] = {}
    exec(python_of(CLIENTS).replace("http://localhost:8000", shipped), names)
    vectors = names["vectors"]
    assert isinstance(vectors, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert abs(vectors[0] @ vectors[1]) < 0.999


def test_readmes_python_runs_and_prints_similarities() -> None:
    printed = output(sys.executable, "-c", python_of(README))
    rows = [[float(one) for one in line.strip(" []").split()] for line in printed.splitlines()]
    assert rows == [[1, rows[0][1]], [rows[0][1], 1]]
    assert 0.3 < rows[0][1] < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("example", TOOLS, ids=range(len(TOOLS)))
def test_a_command_makes_what_it_names(example: Example, tmp_path: Path) -> None:
    (tmp_path / "bundles").mkdir()
    for bundle in (ROOT / "bundles").iterdir():
        (tmp_path / "bundles" / bundle.name).symlink_to(bundle)
    kinds = (("lovely", 5), ("dull", 1))
    rows = [(f"a {kind} film, {i} times", stars) for i in range(20) for kind, stars in kinds]
    put(tmp_path, "reviews.csv", table(("text", "stars"), *rows))
    run(example.command, folder=tmp_path)
    made = re.findall(r"--(?:to|out) (\S+)", example.command)
    assert len(made) == example.command.count("\n")
    for name in made:
        assert (tmp_path / name).exists()


def test_readmes_table_has_every_bundle_and_its_licence() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|[^|]*\| \d+ MB \| ([^|]*) \|", README, re.M)
    cards = {name: json.loads((ROOT / f"bundles/{name}/card.json").read_text()) for name in SHIPPED}
    assert dict(rows) == {name: card["licence"] for name, card in cards.items()}
