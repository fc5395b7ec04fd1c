"""Memory and garbage collection of a process that has loaded its models or parser."""

import ctypes
import gc

MALLOC_THRESHOLD = 32 * 1024 * 1024
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h's


def trim_heap() -> None:
    """Return free memory to the operating system, which glibc does not do by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim:
        trim(0)


def raise_malloc_thresholds() -> None:
    """Let glibc keep up to MALLOC_THRESHOLD free bytes.

    Otherwise it returns each batch's arrays and requests them again, which cost a parse process 45 of
    600 µs per sentence.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP_THRESHOLD, MALLOC_THRESHOLD)
        mallopt(M_TRIM_THRESHOLD, MALLOC_THRESHOLD)


def freeze_gc() -> None:
    """Exclude all current objects from garbage collection, whose scans stop every thread."""
    gc.collect()
    gc.freeze()
