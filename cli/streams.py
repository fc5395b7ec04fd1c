"""The standard streams, which a command's caller may have closed."""

import os
import sys
from io import BufferedReader
from typing import BinaryIO, cast

from heedful.cli.errors import CommandError


def fill_closed() -> None:
    """Open /dev/null as each of descriptors 0 to 2 that is closed: else a file or a socket would get its number, and C
    libraries would write to it."""
    while (null := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(null)


def standard_input() -> BufferedReader:
    """Raise CommandError where it is closed."""
    if sys.stdin is None:
        raise CommandError("the standard input is closed: name a file")
    return cast(BufferedReader, sys.stdin.buffer)


def standard_output() -> BinaryIO:
    """Raise CommandError where it is closed."""
    if sys.stdout is None:
        raise CommandError("the standard output is closed: set --out to a file")
    return sys.stdout.buffer
