"""API keys: what they open, classes, metrics and the file that is read again; and TLS."""

import os
import signal
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.app.http.auth import Keys
from heedful.app.http.tls import check_tls
from heedful.app.settings import Settings
from heedful.runtime.errors import StartupError
from heedful.runtime.service import Service
from tests.app.conftest import Serve, Start
from tests.app.posting import NDJSON, Client, bearer, check, metrics, state
from tests.process import PATIENCE, output, ready_at, wait_for

OPEN = ("/health", "/metrics", "/docs", "/openapi.json", "/", "/static/vendor/swagger-ui.css")
OTHERS = [
    *(None, "", "Bearer", "Bearer wrong", "Basic sesame", "sesame", "Bearer sesam"),
    *("Bearer sesame2", "Bearer sesame and more", "Bearer ключ"),
]


@pytest.mark.anyio
async def test_what_the_key_opens(serve: Serve) -> None:
    """Probes and the documentation need none."""
    async with serve(start=False, api_key="sesame") as client:
        for path in OPEN:
            assert (await client.get(path)).status_code == 200
        check(await client.get("/ready"), 503, "not_ready")
        for header in (*OTHERS, "Bearer sesame", "bearer sesame"):
            headers = {} if header is None else {"Authorization": header.encode()}
            for method, path, status, code in (
                ("GET", "/models", 503, "not_ready"),
                ("GET", "/nowhere", 404, "route_not_found"),
                ("POST", "/docs", 405, "method_not_allowed"),
            ):
                answer = await client.request(method, path, headers=headers)  # type: ignore[arg-type]  # bytes are fine
                if header in OTHERS:
                    check(answer, 401, "unauthorized")
                    assert answer.headers["WWW-Authenticate"] == "Bearer"
                else:
                    check(answer, status, code)


FILE = '[search]\nkey = "sesame"\n\n[import]\nkey = "open"\nclass = "bulk"\n'


async def status_of(client: Client, key: str) -> int:
    return (await client.get("/models", headers=bearer(key))).status_code


@pytest.mark.anyio
async def test_named_keys_are_counted_and_their_file_is_read_again(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys' names are a metric's label only if the setting says so."""
    file = tmp_path / "keys.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FILE.encode())  # as PowerShell writes it
    async with serve(start=False, api_keys=file) as client:
        assert await status_of(client, "open") == 503
        page = await metrics(client)
        assert "import" not in page
        assert 'key="' not in page
    async with serve(start=False, api_keys=file, api_key="own", metrics_keys=True) as client:
        for key in ("sesame", "own", "open"):
            assert await status_of(client, key) == 503  # nothing is loaded
        assert await status_of(client, "another") == 401
        page = await metrics(client)
        for name in ("search", "default", "import"):
            assert f'heedful_key_requests_total{{key="{name}",status="503"}} 1.0' in page
        assert "sesame" not in page
        keys = state(client).keys
        file.write_text(FILE.replace("sesame", "changed"))
        with monkeypatch.context() as patched:  # it cannot be read for a moment
            patched.setattr(Path, "read_text", lambda *_, **__: os.open("/nowhere", 0))
            keys.refresh()
        assert await status_of(client, "sesame") == 503
        keys.refresh()
        assert await status_of(client, "sesame") == 401
        for content in ("[search]\nkey = 3\n", None):
            file.write_text(content) if content else file.unlink()
            keys.refresh()
            assert await status_of(client, "changed") == 503


@pytest.mark.anyio
async def test_bulk_requests_are_told_from_interactive_ones(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is bulk by its header or its key's class, also as NDJSON."""
    noted: list[bool] = []
    work = Service.answer

    async def noting(*args: Any, bulk: bool) -> Any:
        noted.append(bulk)
        return await work(*args, bulk=bulk)

    monkeypatch.setattr(Service, "answer", noting)
    (tmp_path / "keys.toml").write_text(FILE)
    search, importing, bulk = bearer("sesame"), bearer("open"), {"X-Priority": "bulk"}
    async with serve(api_keys=tmp_path / "keys.toml") as client:
        for headers in (search, search | bulk, importing):
            for media in ({}, NDJSON):
                answer = await client.post("/embed", json={"inputs": "a"}, headers=headers | media)
                assert answer.status_code == 200
    assert noted == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[a]\n", "a.key: Field required"),
        ('[a]\nkey = "two words"\n', "a.key: "),
        ('[a]\nkey = "b"\nclass = "fast"\n', "a.class: "),
        ("a = 3\n", "a: must be a table with key"),
        ('[a]\nkey = "b"\n[c]\nkey = "b"\n', "the same key"),
        ("[a", "Expected"),
    ],
)
def test_a_wrong_file_is_one_line_without_a_key(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(content)
    with pytest.raises(StartupError) as caught:
        Keys(Settings(api_keys=file))
    assert reason in str(caught.value)
    assert "HEEDFUL_API_KEYS" in str(caught.value)
    assert "two words" not in str(caught.value)


def issue(folder: Path) -> tuple[Path, Path]:
    """A new certificate of 127.0.0.1 and its key in a folder."""
    folder.mkdir()
    cert, key = folder / "cert.pem", folder / "key.pem"
    about = "-newkey rsa:2048 -nodes -days 1 -subj /CN=heedful -addext subjectAltName=IP:127.0.0.1"
    output("openssl", "req", "-x509", *about.split(), "-out", cert, "-keyout", key)
    return cert, key


def test_https(start: Start, healthcheck: list[str], tmp_path: Path) -> None:
    """A handshake that does not come ends after the head timeout; a renewed certificate is read at a reload."""
    cert, key = issue(tmp_path / "first")
    # A process that is late with its heartbeat because the machine is busy would count as not ready.
    limits = {"hang_timeout": str(int(PATIENCE)), "head_timeout": "3"}
    process = start(processes="2", tls_cert=str(cert), tls_key=str(key), **limits)
    wait_for(lambda: "listening on https://127.0.0.1:" in process.log or None, "a port")
    port = process.log.partition("https://127.0.0.1:")[2].split()[0]
    context = ssl.create_default_context(cafile=cert)

    url = f"https://127.0.0.1:{port}"
    wait_for(lambda: ready_at(url, verify=context), "a serving process")
    assert "Traceback" not in process.log
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{port}/health", timeout=PATIENCE)
    output(*healthcheck, HEEDFUL_PORT=port, HEEDFUL_TLS_CERT=str(cert))
    with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE) as silent:
        assert silent.recv(1) == b""

    def served() -> set[str]:
        """The certificates that the processes present."""
        return {ssl.get_server_certificate(("127.0.0.1", int(port))) for _ in range(8)}

    before = cert.read_text()
    renewed = issue(tmp_path / "renewed")
    renewed[0].replace(cert)  # its key is not there yet
    process.popen.send_signal(signal.SIGHUP)
    refused = "the previous certificate stays: HEEDFUL_TLS_CERT and HEEDFUL_TLS_KEY: "
    wait_for(lambda: process.log.count(refused) == 2 or None, "a refusal")
    assert served() == {before}
    renewed[1].replace(key)
    process.popen.send_signal(signal.SIGHUP)
    wait_for(lambda: served() == {cert.read_text()} or None, "the new certificate")
    assert process.log.count(refused) == 2


def test_keys_of_tls_that_cannot_be_used(tmp_path: Path) -> None:
    cert, key = issue(tmp_path / "issued")
    with pytest.raises(StartupError, match="HEEDFUL_TLS_CERT and HEEDFUL_TLS_KEY: a key without"):
        check_tls(Settings(tls_key=key))
    encrypted = tmp_path / "encrypted.pem"
    output("openssl", "pkey", "-in", key, "-out", encrypted, "-aes128", "-passout", "pass:sesame")
    with pytest.raises(StartupError, match="the key is encrypted"):
        check_tls(Settings(tls_cert=cert, tls_key=encrypted))
