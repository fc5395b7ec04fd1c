"""deploy/ray_serve.py: the service's answers on Ray Serve, and a replica killed under load."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.process import PATIENCE, ROOT, wait_for

pytestmark = pytest.mark.slow
CLIENTS = 4
BODY = {"inputs": ["two kids wash their hands"] * 8, "model": "tiny-sst2"}
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.getenv("PYTHONPATH")])),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "deploy.ray_serve:middlewares",
    "RAY_worker_niceness": "0",
    "RAY_DEDUP_LOGS": "0",
    "HEEDFUL_LOG_FORMAT": "json",
}


def client(url: str, key: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE)


def refused(url: str, key: str) -> bool:
    with client(url, key) as http:
        return http.post("/embed", json=BODY).status_code == 401


def test_a_killed_replica_gives_no_answer_but_200_and_503(models: Path, tmp_path: Path) -> None:
    """And the keys are read again, and a line says what a replica has answered."""
    keys, log = tmp_path / "keys.toml", tmp_path / "log"
    keys.write_text('[client]\nkey = "sesame"\n')
    over, answers = threading.Event(), [list[httpx.Response]() for _ in range(CLIENTS)]

    def load(url: str, to: list[httpx.Response]) -> None:
        with client(url, "sesame") as http:
            while not over.is_set():
                to.append(http.post("/embed", json=BODY))

    def wait_for_answers(count: int) -> None:
        least = [len(some) + count for some in answers]
        wait_for(
            lambda: all(len(a) >= n for a, n in zip(answers, least, strict=True)) or None, "answers"
        )

    settings = {"HEEDFUL_MODELS": str(models), "HEEDFUL_API_KEYS": str(keys)}
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tests.ray_serving"],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as serving,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        assert serving.stdin
        assert serving.stdout
        lines = (line.strip() for line in serving.stdout)
        url = next(line for line in lines if line.startswith("http://"))
        clients = [pool.submit(load, url, to) for to in answers]
        try:
            wait_for_answers(5)
            print("kill", file=serving.stdin, flush=True)
            assert next(lines) == "killed"
            wait_for_answers(20)
            over.set()
            for ended in clients:
                ended.result(PATIENCE)
            keys.write_text('[client]\nkey = "changed"\n')
            # A dozen answers: of each replica.
            wait_for(lambda: all(refused(url, "sesame") for _ in range(12)) or None, "its end")
            wait_for(lambda: not any(refused(url, "changed") for _ in range(12)) or None, "a key")
        finally:
            over.set()
            serving.communicate(timeout=PATIENCE)
    wrong = [one for some in answers for one in some if one.status_code not in (200, 503)]
    assert not wrong, [(one.status_code, one.headers, one.text) for one in wrong]
    assert all(some[-1].is_success for some in answers)
    lines_of_answers = [line for line in log.read_text().splitlines() if '"/embed"' in line]
    assert any('"status":200' in line for line in lines_of_answers)
