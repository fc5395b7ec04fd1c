"""What a process that has loaded its models and parsers does before it serves."""

import ctypes
import gc


def give_back() -> None:
    """Return what is free to the operating system, which glibc does not do by itself: loading frees a lot."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim:
        trim(0)


def settle() -> None:
    """Let the collector pass over what there is now: to look through it stops every thread, and it stays."""
    gc.collect()
    gc.freeze()
