"""A temporary folder that cannot be written does not concern the service: it keeps nothing there."""

import signal
import sys
from pathlib import Path

import httpx
import pytest

from tests.process import PATIENCE, Process

FULL = 'mount -t tmpfs -o size=64k tmpfs "$TMPDIR"; cat /dev/zero >"$TMPDIR/zeros" 2>"$WHY"'
READ_ONLY = 'mount -t tmpfs -o ro tmpfs "$TMPDIR"; touch "$TMPDIR/a" 2>"$WHY"'


@pytest.mark.parametrize(
    ("prepare", "why"),
    [(FULL, "No space left on device"), (READ_ONLY, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_the_service_answers(prepare: str, why: str, models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    # In a mount namespace, which ends with the process.
    command = ("unshare", "-rm", "sh", "-c", f'{prepare}; exec "$@"', "sh", sys.executable)
    process = Process(
        tmp_path / "log",
        {"port": "0", "models": str(models), "processes": "2", "threads": "1"},
        {"TMPDIR": str(folder), "WHY": str(tmp_path / "why")},
        (*command, "-m", "heedful"),
    )
    try:
        url = process.ready()
        assert why in (tmp_path / "why").read_text()
        for number in range(3):
            body = {"inputs": [f"kids {number}"], "model": "tiny-sst2"}
            answer = httpx.post(url + "/classify", json=body, timeout=PATIENCE)
            assert answer.status_code == 200, answer.text
        assert httpx.get(url + "/metrics", timeout=PATIENCE).is_success
        process.popen.send_signal(signal.SIGTERM)
        assert process.exit_status() == 0
    finally:
        process.close()
    assert "Traceback" not in process.log
