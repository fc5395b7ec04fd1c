"""How many files and connections a process may have open."""

import resource

MOST = 1 << 20
RESERVE = 64
"""Descriptors that a process needs for other things than connections."""


def raise_descriptor_limit() -> None:
    """A connection takes one, and the usual soft limit is small."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def max_connections() -> int:
    """As many as the process may have descriptors for."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (MOST if limit == resource.RLIM_INFINITY else min(limit, MOST)) - RESERVE
