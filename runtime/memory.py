"""Memory and garbage collection of a process that has loaded its models and parser."""

import ctypes
import gc


def trim_heap() -> None:
    """Return free memory to the operating system, which glibc does not do by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim:
        trim(0)


def freeze_gc() -> None:
    """Exclude all current objects from garbage collection, whose scans stop every thread."""
    gc.collect()
    gc.freeze()
