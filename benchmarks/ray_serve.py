"""deploy/ray_serve.py on Ray Serve against the plain service, with and without Ray's two flags for throughput.

    python -m benchmarks.ray_serve [--quick]

Writes results/performance/ray_serve.json. One server is up at a time, each once a round, since Ray's own processes
take processor time even when no request comes.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import typer

from benchmarks import records
from benchmarks.closed_loop import Closed, Load
from benchmarks.options import BUNDLES, Data, Models, Quick, Rounds, Seconds
from benchmarks.processes import ROOT, Server, free_port, heedful, serving
from benchmarks.texts import DATA, sentences

MODELS = ("disan-sst5", "ms-san-embed")
"""One model without a parse, one with."""
CONCURRENCY = (1, 16, 64)
SENTENCES = 12_800
WARM_SECONDS = 2
PLAIN = "heedful serve"
FLAGS: Mapping[str, Mapping[str, str]] = {
    "Ray Serve": {},
    "Ray Serve, HAProxy": {"RAY_SERVE_ENABLE_HA_PROXY": "1"},
    "Ray Serve, HAProxy, throughput": {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    },
}
MEASURED = f"""Single sentences over HTTP (wrk), distinct, the cache off; two serving processes or two replicas. HAProxy
is `RAY_SERVE_ENABLE_HA_PROXY=1`, throughput `RAY_SERVE_THROUGHPUT_OPTIMIZED=1`. Medians of the rounds; the ratio is
that of the requests per second of `{PLAIN}` to those of the row."""


def main(
    seconds: Seconds = 4,
    rounds: Rounds = 3,
    quick: Quick = False,
    models: Models = BUNDLES,
    data: Data = DATA,
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (1, 1) if quick else (seconds, rounds)
    texts = sentences(SENTENCES, data)
    loads: dict[tuple[str, str, int], list[Load]] = {}
    for _ in range(rounds):
        for name in (PLAIN, *FLAGS):
            with _server(name, models.resolve()) as server:
                for model in MODELS:
                    bodies = [{"inputs": text, "model": model} for text in texts]
                    closed = Closed(server.url, "/embed", bodies)
                    closed.run(max(CONCURRENCY), WARM_SECONDS)
                    for connections in CONCURRENCY:
                        load = closed.run(connections, seconds)
                        loads.setdefault((model, name, connections), []).append(load)
                        typer.echo(f"{name}, {model}, c = {connections}: {load}")
    table: list[records.Row] = [
        {
            "server": name,
            "model": model,
            "c": connections,
            "requests/s": _median(runs, "requests_per_second"),
            "p50 ms": _median(runs, "p50"),
            "p99 ms": _median(runs, "p99"),
            "ratio": statistics.median(
                plain.requests_per_second / load.requests_per_second
                for plain, load in zip(loads[model, PLAIN, connections], runs, strict=True)
            ),
        }
        for (model, name, connections), runs in sorted(loads.items())
    ]
    for row in table:
        typer.echo(row)
    records.write("ray_serve", "Beside Ray Serve", records.table(MEASURED, table))


def _server(name: str, bundles: Path) -> AbstractContextManager[Server]:
    return heedful(bundles) if name == PLAIN else _ray(bundles, FLAGS[name])


@contextmanager
def _ray(bundles: Path, flags: Mapping[str, str]) -> Iterator[Server]:
    """`serve run` with a new Ray on this machine's cores."""
    port = free_port()
    env = {
        "PYTHONPATH": str(ROOT),
        "HEEDFUL_MODELS": str(bundles),
        "HEEDFUL_CACHE_ITEMS": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "deploy.ray_serve:middlewares",
        **flags,
    }
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "serve.yaml"  # JSON is YAML
        http = {"host": "127.0.0.1", "port": port}
        applications = [{"name": "heedful", "import_path": "deploy.ray_serve:app"}]
        config.write_text(json.dumps({"http_options": http, "applications": applications}))
        command: list[str | Path] = [Path(sys.executable).with_name("serve"), "run", config]
        with serving(command, f"http://127.0.0.1:{port}", "/ready", env=env) as server:
            yield server


def _median(loads: list[Load], name: str) -> float:
    values: list[float] = [getattr(load, name) for load in loads]
    return statistics.median(values)


if __name__ == "__main__":
    typer.run(main)
