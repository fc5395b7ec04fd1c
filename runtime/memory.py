"""Memory and garbage collection of a process that has loaded its models and parser."""

import ctypes
import gc

YOUNG_OBJECTS = 20_000
"""New objects after which cycles among them are looked for. With Python's 700 that took 5 % of the time of single
sentences beside encoding, and what was found was next to nothing."""


def trim_heap() -> None:
    """Return free memory to the operating system, which glibc does not do by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim:
        trim(0)


def freeze_gc() -> None:
    """Exclude all current objects from garbage collection, whose scans stop every thread; scan new ones less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
