"""deploy/ray_serve.py: the service's answers on Ray Serve, and a replica killed under load."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.builders import build_models
from tests.process import PATIENCE, ROOT, wait_for

pytestmark = pytest.mark.slow
CLIENTS = 4
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.getenv("PYTHONPATH")])),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "deploy.ray_serve:middlewares",
    "RAY_worker_niceness": "0",
    "RAY_DEDUP_LOGS": "0",
}


def test_a_killed_replica_gives_no_answer_but_200_and_503(tmp_path: Path) -> None:
    """And the keys are read again, and a line says what a replica has answered."""
    models = tmp_path / "bundles"
    models.mkdir()
    build_models(models)
    keys, log = tmp_path / "keys.toml", tmp_path / "log"
    keys.write_text('[client]\nkey = "sesame"\n')
    over = threading.Event()
    answered = [0] * CLIENTS
    body = {"inputs": ["two kids wash their hands"] * 8, "model": "tiny-sst2"}

    def load(url: str, client: int) -> list[httpx.Response]:
        answers = []
        headers = {"Authorization": "Bearer sesame"}
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as http:
            while not over.is_set():
                answers.append(http.post("/embed", json=body))
                answered[client] += 1
        return answers

    def wait_for_answers(count: int) -> None:
        before = list(answered)
        wait_for(
            lambda: all(n >= b + count for n, b in zip(answered, before, strict=True)) or None,
            "answers",
        )

    def refused(url: str, key: str) -> bool:
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx.post(f"{url}/embed", json=body, headers=headers, timeout=PATIENCE)
        return answer.status_code == 401

    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "tests.ray_serving"],
            cwd=ROOT,
            env={
                **os.environ,
                **ENVIRONMENT,
                "HEEDFUL_MODELS": str(models),
                "HEEDFUL_API_KEYS": str(keys),
                "HEEDFUL_LOG_FORMAT": "json",
            },
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
        clients = [pool.submit(load, url, number) for number in range(CLIENTS)]
        try:
            wait_for_answers(5)
            serving.stdin.write("kill\n")
            serving.stdin.flush()
            assert next(lines) == "killed"
            wait_for_answers(20)
            over.set()
            answers = [client.result(PATIENCE) for client in clients]
            keys.write_text('[client]\nkey = "changed"\n')
            # A dozen answers: of each replica.
            wait_for(lambda: all(refused(url, "sesame") for _ in range(12)) or None, "its end")
            wait_for(lambda: not any(refused(url, "changed") for _ in range(12)) or None, "a key")
        finally:
            over.set()
            serving.communicate(timeout=PATIENCE)
    wrong = [one for each in answers for one in each if one.status_code not in (200, 503)]
    assert not wrong, [(one.status_code, one.headers, one.text) for one in wrong]
    assert all(each[-1].is_success for each in answers)
    logged = [
        json.loads(line[line.index("{") :])
        for line in log.read_text().splitlines()
        if '"logger":"heedful.access"' in line
    ]
    assert ("/embed", 200, 8) in [
        (line["route"], line["status"], line.get("inputs")) for line in logged
    ]
