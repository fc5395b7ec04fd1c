"""Memory that was needed once."""

import ctypes


def give_back() -> None:
    """Return what is free to the operating system, which glibc does not do by itself: loading frees a lot."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim:
        trim(0)
