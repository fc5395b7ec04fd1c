"""Log lines: one a request, in one shape, never with a text or a key, and never in the way of the service."""

import json
import logging
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from heedful.app.observability import logs
from heedful.app.observability.logs import Lines, Stderr
from heedful.export.bundle_writer import write
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER
from heedful.text.vocab import SPECIAL
from tests.app.conftest import Serve, Start
from tests.app.posting import JSON, bearer
from tests.app.two_processes import connect
from tests.builders import WORDS
from tests.process import PATIENCE


def record(**extra: object) -> logging.LogRecord:
    fields = {"name": "heedful.access", "levelno": logging.INFO, "levelname": "INFO"}
    fields |= {"msg": "%s %s", "args": ("POST", "/"), "created": 0.0, "msecs": 7.0}
    return logging.makeLogRecord({**fields, **extra})


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


def handler(descriptor: int, format: Literal["text", "json"] = "text") -> Stderr:
    handler = Stderr(descriptor)
    handler.setFormatter(Lines(format))
    return handler


def test_who_reads_nothing_costs_lines_and_no_time(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these would block for ever otherwise. A reader that has gone is no failure either."""
    monkeypatch.setattr(logs, "MAX_WAITING", 50)
    dropped: list[None] = []
    for in_thread in (False, True):  # the first one fills the pipe
        writing = handler(pipe[1], "json")
        if in_thread:
            writing.start(lambda: dropped.append(None))
        for _ in range(2000):
            writing.emit(record())
        writing.flush()
    assert 1900 < len(dropped) < 2000
    os.close(pipe[0])
    for in_thread in (False, True):
        writing = handler(pipe[1])
        if in_thread:
            writing.start(lambda: None)
        writing.emit(record())
        writing.flush()


@pytest.mark.anyio
async def test_probes_that_succeed_are_no_requests_of_interest(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "heedful.access")
    expected = [
        *(("/health", 200, "DEBUG"), ("/metrics", 200, "DEBUG"), ("/v2/health/live", 200, "DEBUG")),
        *(("/ready", 503, "INFO"), ("/v2/health/ready", 503, "INFO"), ("/models", 503, "INFO")),
    ]
    async with serve(start=False) as idle:
        for path, *_ in expected:
            await idle.get(path)
    lines = [record for record in caplog.records if record.name == "heedful.access"]
    logged = [(vars(line)["route"], vars(line)["status"], line.levelname) for line in lines]
    assert logged == expected


SECRET, KEY, WRONG_KEY = "Zanzibar", "sesame-7f3a", "barley-11c9"
POISON = "wash"
"""The word on which the model `tiny-broken` fails."""


def broken(encoder: bytes) -> bytes:
    """The graph behind a table that sends POISON to a row that the word table does not have."""
    model = onnx.load_model_from_string(encoder)
    rows = np.arange(len(SPECIAL) + len(WORDS))
    rows[len(SPECIAL) + WORDS.index(POISON)] = 10**6
    model.graph.initializer.append(numpy_helper.from_array(rows, "rows"))
    [look_up] = [node for node in model.graph.node if list(node.input) == ["table", "ids"]]
    look_up.input[1] = "mapped"
    model.graph.node.insert(0, helper.make_node("Gather", ["rows", "ids"], ["mapped"]))
    serialised: bytes = model.SerializeToString()
    return serialised


def hostile(url: str, known: httpx.Client) -> list[int]:
    """Requests that hold SECRET wherever a client can put it; their statuses."""
    long = f"{SECRET} " * 40
    bodies: list[dict[str, Any]] = [
        {"inputs": [SECRET, f"the {SECRET} dog"], "model": "tiny-flat"},
        {"inputs": long, "truncate": True, "model": "tiny-flat"},
        {"inputs": long, "model": "tiny-flat"},
        {"inputs": f"{SECRET}\0", "model": "tiny-flat"},
        {"inputs": {SECRET: SECRET}},
        {"inputs": "dog", SECRET: 1},
        {"inputs": "dog", "model": SECRET},
        {"inputs": f"{POISON} {SECRET}", "model": "tiny-broken"},
        {"inputs": SECRET * 1000},
    ]
    answers = [
        *(known.post("/embed", json=body) for body in bodies),
        known.post("/embed", content=f'{{"inputs": "{SECRET}'.encode()),
        known.post(f"/{SECRET}", params={"key": KEY}),
        known.get("/embed", params={SECRET: SECRET}),
        known.get("/models", headers={"X-Request-Id": f"{SECRET} with a blank"}),
        httpx.post(f"{url}/embed", json={"inputs": SECRET}),
        httpx.get(f"{url}/models", headers=bearer(WRONG_KEY)),
        httpx.get(f"{url}/models", headers={"Authorization": WRONG_KEY}),
    ]
    return [answer.status_code for answer in answers]


def test_neither_texts_nor_keys_are_logged_and_each_request_is_one_line(
    start: Start, models: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(models, tmp_path / "bundles")
    flat = read(folder / "tiny-flat")
    fields = {**flat.card.fields(), "name": "tiny-broken"}
    write(folder / "tiny-broken", fields, {**flat.files, ENCODER: broken(flat.files[ENCODER])})
    flags = {"models": str(folder), "log_format": "json", "max_body_bytes": "4000"}
    process = start({"HEEDFUL_API_KEY": KEY}, **flags)
    url = process.ready()
    headers = {**bearer(KEY), **JSON}
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as known:
        statuses = hostile(url, known)
        answer = known.post("/embed", json={"inputs": ["a", "b"]}, headers={"X-Request-Id": "mine"})
        assert answer.status_code == 200
    bad = [200, 200, 422, 422, 422, 200, 404, 500, 413]
    assert statuses == [*bad, 400, 404, 405, 200, 401, 401, 401]
    with connect(process) as raw:
        raw.sendall(f"{SECRET} {KEY} is no HTTP\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    process.popen.send_signal(signal.SIGTERM)
    assert process.exit_status() == 0
    log = process.log
    for private in (SECRET, KEY, WRONG_KEY, POISON + " "):
        assert private not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    # The 500's cause is there all the same.
    assert any("Traceback" in line.get("exception", "") for line in lines)
    requests = [line for line in lines if line["logger"] == "heedful.access"]
    work = [line for line in requests if line["route"] not in ("/ready", "/health")]
    assert sorted(line["status"] for line in work) == sorted([*statuses, 200, 400])
    [mine] = [line for line in requests if line["request_id"] == "mine"]
    del mine["time"], mine["duration_ms"]
    assert mine == {
        **{"level": "info", "logger": "heedful.access", "message": "request"},
        **{"request_id": "mine", "method": "POST", "route": "/embed", "status": 200},
        **{"model": "tiny-broken", "inputs": 2},
    }
