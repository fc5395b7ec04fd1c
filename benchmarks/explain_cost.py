"""What each part of an explanation costs, next to an embedding and the bare explanation, and its session's memory.

    python -m benchmarks.explain_cost [--model ms-san-nli] [--tokens 20] [--threads 2] [--parts evidence ..]

One sentence through the service: parse, graphs, head, answer's values. Each ratio is the median over rounds
of an embedding, an explanation and an explanation with one more part, so that other load on the machine
counts for all three. Memory is a process's private dirty memory, with the bundle's sessions
open, compared with sessions that each hold their own weights.
"""

import argparse
import asyncio
import ctypes
import gc
import multiprocessing
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.cores import usable_cores
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.engine.work import Request
from heedful.runtime.explain.graph import ExplainGraph
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service
from heedful.text.batch import Sentence, collate

ROUNDS = 50
PARTS = {
    "ablation": ExplainOptions(ablation=True),
    "faithfulness": ExplainOptions(faithfulness=True),
    "evidence": ExplainOptions(evidence=True),
    "gradients": ExplainOptions(gradients=True),
    "curves": ExplainOptions(curves=True),
}
WORDS = ("a", "man", "in", "the", "park", "reads", "his", "old", "book")


async def compare(
    bundles: Path, model: str, tokens: int, threads: int, parts: Sequence[str], out: Console
) -> None:
    service = Service(Options(models=bundles, threads=threads))
    await service.start()
    text = " ".join(WORDS[i % len(WORDS)] for i in range(tokens))
    inputs = Inputs.from_texts([text])
    embed, explain = (service.bind(task, model) for task in ("embed", "explain"))
    for part in parts:
        requests: list[Callable[[], Request[Any]]] = [
            lambda: embed.embed(inputs),
            lambda: explain.explain(inputs, ExplainOptions()),
            partial(explain.explain, inputs, PARTS[part]),
        ]
        rounds = np.empty((ROUNDS, len(requests)))
        for seconds in rounds:
            for i, make in enumerate(requests):
                start = time.perf_counter()
                await service.answer(make())
                seconds[i] = time.perf_counter() - start
        plain, explained, with_part = np.median(rounds, axis=0) * 1000
        to_plain, to_explained = np.median(rounds[:, 2:] / rounds[:, :2], axis=0)
        out.print(
            f"{model:20} {part:12} {with_part:8.2f} ms, embed {plain:5.2f}, explain {explained:5.2f};"
            f" {to_explained:.2f} times explain, {to_plain:.2f} times embed"
        )
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
    batch = collate([Sentence(np.full(20, 2), np.zeros(20, np.int64))])
    feeds = encoder_feeds(bundle.card, batch)
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
        explainer.run(explainer.feeds(batch))
    del bundle
    return private() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("bundles"))
    parser.add_argument("--model", default="ms-san-nli")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    out = Console(width=140)
    compared = (options.models, options.model, options.tokens, options.threads, options.parts)
    asyncio.run(compare(*compared, out))
    context = multiprocessing.get_context("spawn")
    for kind in ("plain", "explained", "twice"):
        with context.Pool(1) as pool:
            added = pool.apply(memory, (options.models / options.model, kind))
        out.print(f"{kind:10} {added:6.1f} MB")


if __name__ == "__main__":
    main()
