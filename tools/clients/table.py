"""Runs the clients' programs, and writes their results into docs/clients.md."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np

from tests.process import PATIENCE, ROOT
from tools.clients.programs.common import DOCUMENT, MODEL

PAGE = ROOT / "docs/clients.md"
BEGIN, END = "<!-- written by python -m tools.clients -->", "<!-- end -->"
ENVIRONMENT = Path.home() / ".cache/heedful/clients"
"""Made by `make clients` from tools/clients/requirements.txt."""
ALIASES = f"text-embedding-3-small={MODEL}"
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "HAYSTACK_TELEMETRY_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
}
VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


@dataclass(frozen=True)
class Client:
    program: str
    package: str | None = None  # None for a program of the system
    module: str | None = None  # the module that the program imports
    command: tuple[str, ...] = ()  # prints the version of a program of the system

    @property
    def name(self) -> str:
        return self.package or self.command[0]


CLIENTS = (
    Client("openai_", "openai", "openai"),
    Client("langchain_openai_", "langchain-openai", "langchain_openai"),
    Client("llama_index_", "llama-index-embeddings-openai-like", "llama_index"),
    Client("haystack_", "haystack-ai", "haystack"),
    Client("chromadb_", "chromadb", "chromadb"),
    Client("litellm_", "litellm", "litellm"),
    Client("huggingface_hub_", "huggingface_hub", "huggingface_hub"),
    Client("cohere_", "cohere", "cohere"),
    Client("tritonclient_", "tritonclient", "tritonclient"),
    Client("open_inference_", "open-inference-openapi", "open_inference"),
    Client("curl_http2", command=("curl", "--version")),
    Client("java_http2", command=("java", "--version")),
)


@dataclass(frozen=True)
class Row:
    client: Client
    version: str
    results: tuple[str, ...]  # the names of what worked
    fault: str | None = None


def in_this_environment() -> list[Client]:
    """The clients that can be run without `make clients`."""
    return [client for client in CLIENTS if client.module is None or find_spec(client.module)]


def reference(url: str) -> list[float]:
    """The long document's vector, by a plain HTTP request."""
    body = {"input": DOCUMENT, "model": MODEL}
    answer = httpx.post(f"{url}/v1/embeddings", json=body, timeout=PATIENCE)
    assert "X-Windows" in answer.headers
    vector: list[float] = answer.json()["data"][0]["embedding"]
    return vector


def run(
    client: Client,
    url: str,
    expected: list[float],
    python: Path,
    extra: Mapping[str, str] | None = None,
) -> Row:
    """Run the client's program, with `extra` in its environment, and compare its results."""
    command = (python, "-m", f"tools.clients.programs.{client.program}", url)
    environment = {**os.environ, **QUIET, **(extra or {})}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return Row(client, version(client, python), (), lines[-1][:300])
    results = json.loads(done.stdout.splitlines()[-1])
    fault = None
    if "document" in results and not np.allclose(results["document"], expected, atol=1e-5):
        fault = "its vector of the document differs"
    if results.get("1,000 texts", 1000) != 1000:
        fault = f"{results['1,000 texts']} vectors of 1,000 texts"
    return Row(client, version(client, python), tuple(results), fault)


def version(client: Client, python: Path) -> str:
    command = [python, "-c", VERSION, client.package] if client.package else client.command
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # type: ignore[arg-type]
    return re.search(r"\d[\w.]*", done.stdout)[0]  # type: ignore[index]  # every version has a digit


def cell(row: Row) -> str:
    """What works, or why not."""
    if row.fault is not None:
        return f"no: {row.fault}"
    return "; ".join(
        "a document of 3,000 words" if name == "document" else name for name in row.results
    )


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| client | version | works unmodified |", "|---|---|---|"]
    lines += [f"| {row.client.name} | {row.version} | {cell(row)} |" for row in rows]
    return "\n".join(lines)


def write(rows: list[Row]) -> None:
    """Replace the table of docs/clients.md."""
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(f"{head}{BEGIN}\n\n{table(rows)}\n\n{END}{tail}", encoding="utf-8")


def python_of(client: Client) -> Path:
    """The interpreter whose environment holds the client."""
    if client in in_this_environment():
        return Path(sys.executable)
    return ENVIRONMENT / "bin/python"
