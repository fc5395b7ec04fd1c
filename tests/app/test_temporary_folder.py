"""A temporary folder that cannot be written does not concern the service: it keeps nothing there."""

import signal
import sys
from pathlib import Path

import httpx

from tests.process import PATIENCE, Process

FULL = 'mount -t tmpfs -o size=64k tmpfs "$TMPDIR"; cat /dev/zero >"$TMPDIR/zeros" 2>"$WHY"'


def test_the_service_answers(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    # In a mount namespace, which ends with the process.
    command = ("unshare", "-rm", "sh", "-c", f'{FULL}; exec "$@"', "sh", sys.executable)
    process = Process(
        tmp_path / "log",
        {"port": "0", "models": str(models), "processes": "2", "threads": "1"},
        {"TMPDIR": str(folder), "WHY": str(tmp_path / "why")},
        (*command, "-m", "heedful"),
    )
    try:
        url = process.ready()
        assert "No space left on device" in (tmp_path / "why").read_text()
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
