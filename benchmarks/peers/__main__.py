"""Heedful against other servers of the same graph, against all-MiniLM-L6-v2, and against itself with a static table.

Writes results/performance/peers.json.

    python -m benchmarks.peers [--only ray] [--quick]

Each peer has a separate environment, made on the first run. Two servers are up at a time, and take turns:
Heedful, the peer, Heedful, the peer; a ratio is the median of those of the rounds.
"""

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import environments, records, static_bundle
from benchmarks.closed_loop import Closed, Load, LoadFailed
from benchmarks.environments import NotInstalled
from benchmarks.options import BUNDLES, Data, Models, Quick, Rounds, Seconds
from benchmarks.processes import Server, ServerFailed, bundles, free_port, heedful, serving
from benchmarks.texts import DATA, sentences
from benchmarks.workers import rate, worker
from heedful.runtime.cores import usable_cores

CONCURRENCY = (1, 16, 64)
JUDGED = 64
"""Connections at which the goals are judged."""
PLAIN, PARSED = "disan-sst5", "ms-san-embed"
"""Bundles: without a parse, and with one."""
SENTENCES, ROUND_SENTENCES = 12_800, 1024


@dataclass(frozen=True, slots=True)
class Peer:
    """A server: its command, its readiness route, and the request body for a sentence."""

    name: str
    package: str
    command: tuple[str, ...]
    """Arguments of python -m in its environment."""
    ready: str
    body: Callable[[str], Any] = lambda text: {"inputs": text}
    path: str = "/embed"
    ours: str = PLAIN
    """The bundle it is compared with."""


def _program(name: str) -> tuple[str, ...]:
    return (f"benchmarks.peers.{name}",)


PEERS = (
    Peer("fastapi", "fastapi", _program("fastapi"), "/docs"),
    Peer("litserve", "litserve", _program("litserve"), "/health"),
    Peer(
        "bentoml",
        "bentoml",
        (
            "bentoml",
            "serve",
            "benchmarks.peers.bentoml:Embedder",
            "--host",
            "127.0.0.1",
            "--port",
            "{port}",
        ),
        "/readyz",
        body=lambda text: {"inputs": [text]},
    ),
    Peer("ray", "ray", _program("ray"), "/-/healthz"),
    Peer(
        "infinity",
        "infinity-emb",
        _program("infinity"),
        "/health",
        body=lambda text: {"input": text, "model": "all-MiniLM-L6-v2"},
        path="/embeddings",
        ours=PARSED,
    ),
)
"""The first four run the same graph; the last one all-MiniLM-L6-v2."""
STATIC = "static"
"""A bound, not a rival: our server with a table of word vectors (benchmarks.static_bundle)."""
INT8 = "-int8"
ENGINES = ("sentence-transformers", "onnxruntime", f"onnxruntime{INT8}", "openvino")
GOALS = {"single sentences": PLAIN, "single sentences with a parse": PARSED}
ENGINE_GOALS = {"over torch": ENGINES[0], "over ONNX Runtime": ENGINES[2]}
ALONE, NAIVE = "alone", "fastapi"
"""The goal of one connection, and the peer that it is compared with."""
WARM_SECONDS = 2
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "BENTOML_DO_NOT_TRACK": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "ORT_DISABLE_TELEMETRY": "1",
}
SERVED = f"""Single sentences over HTTP (wrk). FastAPI, LitServe, BentoML and Ray Serve run the encoder.onnx of
`{PLAIN}` in fp32, with one worker per core and one thread each, on words split at white space, and answer with
orjson; they check nothing. Infinity runs all-MiniLM-L6-v2 (torch), on Python 3.12 at most, and is compared with
`{PARSED}` and its parse. Heedful is the service as shipped, but that it logs no line for a request
(`HEEDFUL_LOG_LEVEL=warning`): FastAPI and LitServe log none either. The ratio is that of requests per second.
The mean of word vectors is a bound, not a rival, and counts in no goal: it is our own server with a bundle that
looks up the word vectors of `{PLAIN}` and takes their mean, as model2vec's static tables do (300 values a text;
`{PLAIN}` has 600)."""
EMBEDDED = f"""In one process, no HTTP, batches of 64, as many threads as cores: `heedful.load("{PARSED}").encode`,
parse included, against all-MiniLM-L6-v2: in float32 but for int8's row, and for OpenVINO's, whose default is
bfloat16 where the processor has it (avx512_bf16)."""


def main(
    only: Annotated[list[str] | None, typer.Option(help="These peers; default all.")] = None,
    seconds: Seconds = 4,
    rounds: Rounds = 3,
    quick: Quick = False,
    models: Models = BUNDLES,
    graph: Annotated[
        Path | None, typer.Option(help="The peers' bundle in fp32, if ours is not.")
    ] = None,
    data: Data = DATA,
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (1, 1) if quick else (seconds, rounds)
    texts = sentences(SENTENCES, data)
    graph = (graph or models / PLAIN).resolve()
    programs: dict[str, Callable[[], Sequence[dict[str, Any]]]] = {
        peer.name: partial(_compare, peer, models, graph, texts, rounds, seconds) for peer in PEERS
    }
    programs[STATIC] = partial(_compare_static, models, texts, rounds, seconds)
    compared: dict[str, Sequence[dict[str, Any]]] = {}
    embedded: dict[str, dict[str, Any]] = {}
    absent = []
    for name, measure in programs.items():
        if not only or name in only:
            try:
                compared[name] = measure()
                for row in compared[name]:
                    typer.echo(row)
            except (NotInstalled, ServerFailed, LoadFailed) as error:
                absent.append({"peer": name, "not measured because": str(error)[-300:]})
                typer.echo(absent[-1])
    for engine in ENGINES:
        if not only or engine in only:
            try:
                embedded[engine] = _in_process(engine, models, texts, rounds)
                typer.echo(embedded[engine])
            except (NotInstalled, ServerFailed, LoadFailed) as error:
                absent.append({"peer": engine, "not measured because": str(error)[-300:]})
                typer.echo(absent[-1])
    served = [row for rows in compared.values() for row in rows]
    rivals = [row for name, rows in compared.items() if name != STATIC for row in rows]
    judged = [row for row in rivals if row["c"] == JUDGED]
    goals = {
        goal: min(row["ratio"] for row in judged if row["ours"] == model)
        for goal, model in GOALS.items()
        if any(row["ours"] == model for row in judged)
    }
    for row in compared.get(NAIVE, ()):
        if row["c"] == 1:
            goals[ALONE] = row["ratio"]
    goals |= {
        goal: embedded[engine]["ratio"]
        for goal, engine in ENGINE_GOALS.items()
        if engine in embedded
    }
    tables = [records.table(SERVED, served), records.table(EMBEDDED, list(embedded.values()))]
    if absent:
        tables.append(records.table("What could not be measured here:", absent))
    records.write("peers", "Beside others", *tables, goals=goals)


def _compare(
    peer: Peer, models: Path, graph: Path, texts: Sequence[str], rounds: int, seconds: float
) -> Sequence[dict[str, Any]]:
    """A row for each concurrency. Raises NotInstalled, ServerFailed, LoadFailed."""
    python, port = environments.python(peer.name), free_port()
    settings = {
        "BUNDLE": str(graph),
        "PORT": str(port),
        "WORKERS": str(usable_cores()),
        **ENVIRONMENT,
    }
    command: list[str | Path] = [python, "-m", *(part.format(port=port) for part in peer.command)]
    with (
        bundles([peer.ours], models) as folder,
        heedful(folder) as server,
        serving(command, f"http://127.0.0.1:{port}", peer.ready, env=settings) as peer_server,
    ):
        load = Closed(peer_server.url, peer.path, [peer.body(text) for text in texts])
        by_concurrency = _alternating(_embedding(server, peer.ours, texts), load, rounds, seconds)
    name = f"{peer.name} {environments.version(peer.name, peer.package)}"
    return [_row(name, peer.ours, c, pairs) for c, pairs in by_concurrency.items()]


def _compare_static(
    models: Path, texts: Sequence[str], rounds: int, seconds: float
) -> Sequence[dict[str, Any]]:
    """A row for each concurrency: the mean of word vectors in our server. Raises ServerFailed, LoadFailed."""
    with bundles([PLAIN], models) as folder, bundles([], models) as other:
        static_bundle.write(models / PLAIN, other / STATIC)
        with heedful(folder) as server, heedful(other) as static_server:
            loads = (_embedding(server, PLAIN, texts), _embedding(static_server, STATIC, texts))
            by_concurrency = _alternating(*loads, rounds, seconds)
    name = "mean of word vectors, heedful"
    return [_row(name, PLAIN, c, pairs) for c, pairs in by_concurrency.items()]


def _embedding(server: Server, model: str, texts: Sequence[str]) -> Closed:
    """The load of our server: a sentence a request."""
    return Closed(server.url, "/embed", [{"inputs": text, "model": model} for text in texts])


def _alternating(
    load: Closed, peer_load: Closed, rounds: int, seconds: float
) -> dict[int, list[tuple[Load, Load]]]:
    """Concurrency -> a pair for each round, after a warm-up. Raises LoadFailed."""
    for each in (load, peer_load):
        each.run(JUDGED, WARM_SECONDS)
    by_concurrency: dict[int, list[tuple[Load, Load]]] = {c: [] for c in CONCURRENCY}
    for _ in range(rounds):
        for c, pairs in by_concurrency.items():
            pairs.append((load.run(c, seconds), peer_load.run(c, seconds)))
    return by_concurrency


def _row(name: str, ours: str, c: int, pairs: Sequence[tuple[Load, Load]]) -> dict[str, Any]:
    row: dict[str, Any] = {"peer": name, "ours": ours, "c": c}
    for side, heading in enumerate(("ours ", "peer ")):
        for column, value in (
            ("requests/s", "requests_per_second"),
            ("p50 ms", "p50"),
            ("p99 ms", "p99"),
        ):
            values = [getattr(pair[side], value) for pair in pairs]
            row[heading + column] = statistics.median(values)
    ratios = [pair[0].requests_per_second / pair[1].requests_per_second for pair in pairs]
    return {**row, "ratio": statistics.median(ratios)}


def _in_process(engine: str, models: Path, texts: Sequence[str], rounds: int) -> dict[str, Any]:
    """Sentences a second of our library and of all-MiniLM-L6-v2. Raises NotInstalled, ServerFailed."""
    python, threads = environments.python("minilm"), str(usable_cores())
    with (
        bundles([PARSED], models) as folder,
        worker(sys.executable, "-m", "benchmarks.in_process", folder, PARSED) as library,
        worker(python, "-m", "benchmarks.peers.minilm", engine, threads) as peer,
    ):
        pairs = []
        for number in range(rounds + 1):
            start = number * ROUND_SENTENCES
            group = texts[start : start + ROUND_SENTENCES]
            pairs.append((rate([library], group), rate([peer], group)))
    pairs = pairs[1:]  # the first round warms up
    library_rate, peer_rate = (statistics.median(side) for side in zip(*pairs, strict=True))
    version = environments.version("minilm", engine.removesuffix(INT8))
    return {
        "peer": f"all-MiniLM-L6-v2, {engine} {version}",
        "ours": PARSED,
        "ours sentences/s": library_rate,
        "peer sentences/s": peer_rate,
        "ratio": statistics.median(first / second for first, second in pairs),
    }


if __name__ == "__main__":
    typer.run(main)
