"""What a process that has loaded its models and parsers does before it serves."""

import ctypes
import gc

KEPT = 32 * 1024 * 1024
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h's


def trim_heap() -> None:
    """Return what is free to the operating system, which glibc does not do by itself: loading frees a lot."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim:
        trim(0)


def raise_malloc_thresholds() -> None:
    """Let glibc hold KEPT bytes that are free: it would give the arrays of each batch back and ask for
    them again, which took a parse process 45 of 600 µs a sentence."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP_THRESHOLD, KEPT)
        mallopt(M_TRIM_THRESHOLD, KEPT)


def freeze_gc() -> None:
    """Let the collector pass over what there is now: to look through it stops every thread, and it stays."""
    gc.collect()
    gc.freeze()
