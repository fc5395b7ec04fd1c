"""A disk that is full ends a command with one line."""

import subprocess
import sys
from pathlib import Path

from tests.process import PATIENCE


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "heedful", "openapi"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert ended.returncode != 0
    assert ended.stderr.startswith(b"heedful: [Errno 28] No space left on device")
    assert b"Traceback" not in ended.stderr
