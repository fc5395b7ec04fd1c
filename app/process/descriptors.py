"""The limit of files and connections that a process may have open."""

import resource

MAX_DESCRIPTORS = 1 << 20
RESERVE = 64
"""Descriptors that a process needs for other things than connections."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit, which is usually small, to the hard limit: each connection takes a descriptor."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def max_connections() -> int:
    """The connections for which the process may have descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MAX_DESCRIPTORS if limit == resource.RLIM_INFINITY else min(limit, MAX_DESCRIPTORS)
    ) - RESERVE
