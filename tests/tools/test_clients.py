"""The clients of this environment work, and docs/clients.md says so; `make clients` tries the others."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.examples import table
from tools.clients.table import PAGE, Client, cell, in_this_environment, reference, run

ROWS = {row[0]: row[2] for row in table(PAGE.read_text(encoding="utf-8"), "Tried")}


@pytest.fixture(scope="module")
def expected(shipped: str) -> list[float]:
    return reference(shipped)


@pytest.mark.parametrize("client", in_this_environment(), ids=lambda client: client.name)
def test_a_client_works_unmodified(client: Client, shipped: str, expected: list[float]) -> None:
    if ROWS[client.name].startswith("no:"):
        pytest.skip(f"docs/clients.md says {ROWS[client.name]}")
    if client.command and not shutil.which(client.name):
        pytest.skip(f"{client.name} is not installed")
    row = run(client, shipped, expected, Path(sys.executable))
    assert row.fault is None
    assert ROWS[client.name] == cell(row)


def test_the_usual_clients_are_in_this_environment() -> None:
    names = {client.name for client in in_this_environment()}
    assert names >= {"openai", "huggingface_hub", "cohere", "tritonclient"}
