"""The standard streams, which who starts a command may have closed."""

import os
import sys
from io import BufferedReader
from typing import BinaryIO, cast

from heedful.cli.errors import CommandError


def fill_closed() -> None:
    """Descriptors 0 to 2 that are closed become /dev/null: a file or a socket would take their place, and libraries
    of C write to them."""
    while (null := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(null)


def standard_input() -> BufferedReader:
    """Raises CommandError where it is closed."""
    if sys.stdin is None:
        raise CommandError("the standard input is closed: name a file")
    return cast(BufferedReader, sys.stdin.buffer)


def standard_output() -> BinaryIO:
    """Raises CommandError where it is closed."""
    if sys.stdout is None:
        raise CommandError("the standard output is closed: set --out to a file")
    return sys.stdout.buffer
