"""Try every client against the shipped bundles, and write docs/clients.md."""

import sys
import tempfile
from pathlib import Path

from tests.process import Process
from tools.clients.table import ALIASES, CLIENTS, ENVIRONMENT, python_of, reference, run, write


def main() -> int:
    [files] = ENVIRONMENT.glob("lib/*/site-packages/llama_index/core/_static/tiktoken_cache")
    tokens = {"TIKTOKEN_CACHE_DIR": str(files)}  # tiktoken would fetch what llama-index ships
    with tempfile.TemporaryDirectory() as folder:
        service = Process(Path(folder) / "log", {"port": "0", "aliases": ALIASES}, tokens)
        try:
            url = service.ready()
            expected = reference(url)
            rows = [run(client, url, expected, python_of(client), tokens) for client in CLIENTS]
        finally:
            service.close()
    write(rows)
    for row in rows:
        print(row.client.name, row.version, row.fault or "works", sep="\t")  # noqa: T201
    return any(row.fault for row in rows)


if __name__ == "__main__":
    sys.exit(main())
