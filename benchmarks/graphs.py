"""Encoder graphs in this process, on sentences of equal length: random words whose tree is a chain."""

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.batch import Sentence, collate


def plain(bundle: Bundle, threads: int) -> OrtSession:
    """The encoder in float32."""
    return OrtSession(bundle.files[ENCODER], "cpu", threads)


def sessions(bundle: Bundle, threads: int) -> dict[str, OrtSession]:
    """The encoder by precision: fp32, and int8 if it has that graph."""
    by_precision: dict[str, OrtSession] = {"fp32": plain(bundle, threads)}
    served = LoadedModel(bundle, "cpu", threads)
    if served.precision == "int8":
        by_precision["int8"] = served.encoder.session
    return by_precision


def runner(bundle: Bundle, session: OrtSession) -> Callable[[int, int], Callable[[], object]]:
    """(batch, length) -> a call that runs the encoder on that many sentences of that length."""
    random = np.random.default_rng(1)

    def case(batch: int, length: int) -> Callable[[], object]:
        heads = np.maximum(np.arange(length) - 1, 0)
        rows = random.integers(2, len(bundle.vocab), (batch, length))
        feeds = encoder_feeds(bundle.card, collate([Sentence(row, heads) for row in rows]))
        return lambda: session.run(feeds)

    return case


def call_seconds(
    cases: Sequence[Callable[[], object]],
    rounds: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Seconds of one call of each case: medians of alternating rounds of `seconds` each.

    With `time.process_time` as the clock, only the processor time of this process counts.
    """
    times_by_case: list[list[float]] = [[] for _ in cases]
    for case in cases:
        case()
    for _ in range(rounds):
        for case, times in zip(cases, times_by_case, strict=True):
            calls, started = 0, clock()
            while (passed := clock() - started) < seconds or not calls:
                case()
                calls += 1
            times.append(passed / calls)
    return [statistics.median(times) for times in times_by_case]
