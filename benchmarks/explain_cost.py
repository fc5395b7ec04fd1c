"""The cost of an explanation compared with the plain call, and the memory of its session.

    python -m benchmarks.explain_cost [--bundles bundles] [--model ms-san-nli] [--tokens 20]

One sentence, on one thread, through the service: parse, graphs, head, answer's values. Each ratio is
the median of pairs of calls, one plain and one explained, so that what else the machine does counts
for both. Memory is what a process has for itself (private and dirty), with the bundle's sessions
open, compared with sessions that each hold their own weights.
"""

import argparse
import asyncio
import ctypes
import gc
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from rich.console import Console

from heedful.runtime.bundle import ENCODER, read
from heedful.runtime.explain_graph import ExplainGraph
from heedful.runtime.explain_run import ExplainOptions
from heedful.runtime.graphs import encoder_feeds
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service
from heedful.runtime.session import OrtSession
from heedful.text.batch import Sentence, collate

PAIRS = 50
WORDS = ("a", "man", "in", "the", "park", "reads", "his", "old", "book")


async def compare(bundles: Path, model: str, tokens: int, out: Console) -> None:
    service = Service(Options(models=bundles, threads=1))
    await service.start()
    text = " ".join(WORDS[i % len(WORDS)] for i in range(tokens))
    inputs = Inputs.from_texts([text])
    embed, explain = (service.bind(task, model) for task in ("embed", "explain"))
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "explain": lambda: explain.explain(inputs, ExplainOptions()),
        "explain, ablation": lambda: explain.explain(inputs, ExplainOptions(ablation=True)),
        "explain, faithfulness": lambda: explain.explain(inputs, ExplainOptions(faithfulness=True)),
        "explain, evidence": lambda: explain.explain(inputs, ExplainOptions(evidence=True)),
        "explain, gradients": lambda: explain.explain(inputs, ExplainOptions(gradients=True)),
        "explain, curves": lambda: explain.explain(inputs, ExplainOptions(curves=True)),
    }
    for name, call in calls.items():
        times = []
        for _ in range(PAIRS):
            pair = []
            for each in (lambda: embed.embed(inputs), call):
                start = time.perf_counter()
                await each()
                pair.append(time.perf_counter() - start)
            times.append(pair)
        plain, explained = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
        ratio = statistics.median(pair[1] / pair[0] for pair in times)
        out.print(f"{name:22} {explained:7.2f} ms  plain {plain:6.2f} ms  ratio {ratio:.2f}")
    await service.stop(1)


def private() -> float:
    """Private memory of this process in MB."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024


def memory(folder: Path, kind: str) -> float:
    """MB that the sessions of a bundle add: `plain`, `explained` with shared weights, `twice` without."""
    bundle = read(folder)
    feeds = encoder_feeds(bundle.card, collate([Sentence(np.full(20, 2), np.zeros(20, np.int64))]))
    OrtSession(bundle.files[ENCODER], "cpu", 1).run(feeds)  # what every session needs once
    del bundle
    before = private()
    bundle = read(folder)
    explainer = ExplainGraph(bundle.files, bundle.card) if kind == "explained" else None
    sessions = [
        OrtSession(bundle.files[ENCODER], "cpu", 1, explainer.shared if explainer else {})
        for _ in range(2 if kind == "twice" else 1)
    ]
    for session in sessions:
        session.run(feeds)
    if explainer:
        explainer.run(explainer.feeds(collate([Sentence(feeds["ids"][0], feeds["heads"][0])])))
    del bundle
    return private() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundles", type=Path, default=Path("bundles"))
    parser.add_argument("--model", default="ms-san-nli")
    parser.add_argument("--tokens", type=int, default=20)
    arguments = parser.parse_args()
    out = Console()
    asyncio.run(compare(arguments.bundles, arguments.model, arguments.tokens, out))
    context = multiprocessing.get_context("spawn")
    for kind in ("plain", "explained", "twice"):
        with context.Pool(1) as pool:
            added = pool.apply(memory, (arguments.bundles / arguments.model, kind))
        out.print(f"{kind:10} {added:6.1f} MB")


if __name__ == "__main__":
    main()
