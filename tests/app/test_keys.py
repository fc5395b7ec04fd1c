"""Named API keys: classes, metrics and the file that is read again; and TLS."""

import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path
from typing import cast

import httpx
import pytest
from fastapi import FastAPI

from heedful.app.http.auth import Keys
from heedful.app.http.tls import check_tls
from heedful.app.settings import Settings
from heedful.app.state import AppState, state_of
from heedful.runtime.errors import StartupError
from tests.app.conftest import Serve, Start
from tests.app.test_errors import check
from tests.process import PATIENCE, wait_for

FILE = """
[search]
key = "sesame"

[import]
key = "open"
class = "bulk"
"""


def state(client: httpx.AsyncClient) -> AppState:
    assert isinstance(client._transport, httpx.ASGITransport)
    return state_of(cast(FastAPI, client._transport.app))


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.anyio
async def test_the_names_of_keys_are_no_metric_unless_it_is_set(
    serve: Serve, tmp_path: Path
) -> None:
    file = tmp_path / "keys.toml"
    file.write_bytes(b"\xef\xbb\xbf" + FILE.encode())  # as PowerShell writes it
    async with serve(start=False, api_keys=file) as client:
        assert (await client.get("/models", headers=bearer("open"))).status_code == 503
        page = (await client.get("/metrics")).text
        assert 'route="/models",status="503"} 1.0' in page
        assert "import" not in page
        assert 'key="' not in page


@pytest.mark.anyio
async def test_the_documentation_needs_no_key_and_its_requests_do(serve: Serve) -> None:
    async with serve(start=False, api_key="own") as client:
        for path in ("/docs", "/docs/", "/openapi.json", "/", "/static/vendor/swagger-ui.css"):
            assert (await client.get(path)).status_code == 200
        check(await client.post("/docs"), 401, "unauthorized")
        check(await client.post("/embed", json={"inputs": "kids"}), 401, "unauthorized")
        check(await client.get("/models"), 401, "unauthorized")


@pytest.mark.anyio
async def test_named_keys_are_counted(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(FILE)
    async with serve(start=False, api_keys=file, api_key="own", metrics_keys=True) as client:
        for key in ("sesame", "own", "open"):
            for _ in range(4):  # 503: nothing is loaded
                assert (await client.get("/models", headers=bearer(key))).status_code == 503
        for headers in ({}, bearer("another"), {"Authorization": "Basic sesame"}):
            check(await client.get("/models", headers=headers), 401, "unauthorized")
        page = (await client.get("/metrics")).text
        for name in ("search", "default", "import"):
            assert f'heedful_key_requests_total{{key="{name}",status="503"}} 4.0' in page
        assert "sesame" not in page

        file.write_text(FILE.replace("sesame", "changed"))
        state(client).keys.refresh()
        assert (await client.get("/models", headers=bearer("sesame"))).status_code == 401
        assert (await client.get("/models", headers=bearer("changed"))).status_code == 503
        file.write_text("[search]\nkey = 3\n")
        state(client).keys.refresh()
        assert (await client.get("/models", headers=bearer("changed"))).status_code == 503
        file.unlink()
        state(client).keys.refresh()
        assert (await client.get("/models", headers=bearer("changed"))).status_code == 503


def test_a_file_that_cannot_be_read_for_a_moment_is_read_later(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('[old]\nkey = "old"\n')
    keys = Keys(Settings(api_keys=file))
    file.write_text('[another]\nkey = "another"\n')
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))  # no more can be opened
    try:
        keys.refresh()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert keys.find("old") is not None
    keys.refresh()
    assert keys.find("old") is None
    assert keys.find("another") is not None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[a]\n", "a.key: Field required"),
        ('[a]\nkey = "two words"\n', "a.key: "),
        ('[a]\nkey = "b"\nclass = "fast"\n', "a.class: "),
        ("a = 3\n", "a: must be a table with key"),
        ('[a]\nkey = "b"\nrate = 2\n', "a.rate: "),
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


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 and its key."""
    return issue(tmp_path)


def issue(folder: Path) -> tuple[Path, Path]:
    """A new certificate of 127.0.0.1 and its key; they replace those in the folder."""
    openssl = shutil.which("openssl")
    assert openssl, "install openssl"
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=heedful", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-out", str(cert), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return cert, key


def test_https(
    start: Start,
    certificate: tuple[Path, Path],
    healthcheck: list[str],
    tmp_path: Path,
) -> None:
    cert, key = certificate
    # A process that is late with its heartbeat because the machine is busy would count as not ready.
    process = start(
        processes="2", tls_cert=str(cert), tls_key=str(key), hang_timeout=str(int(PATIENCE))
    )
    wait_for(lambda: "listening on https://127.0.0.1:" in process.log or None, "a port")
    port = process.log.partition("https://127.0.0.1:")[2].split()[0]
    address = ("127.0.0.1", int(port))

    def answers(version: ssl.TLSVersion) -> list[int]:
        """The statuses of two requests over a new connection."""
        context = ssl.create_default_context(cafile=cert)
        context.minimum_version = context.maximum_version = version
        with httpx.Client(verify=context, timeout=PATIENCE) as client:
            return [client.get(f"https://127.0.0.1:{port}/ready").status_code for _ in range(2)]

    def ready() -> bool | None:
        try:
            return answers(ssl.TLSVersion.TLSv1_3) == [200, 200] or None
        except httpx.TransportError:  # no process answers yet
            return None

    wait_for(ready, "a serving process")
    for version in [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3] * 3:
        assert answers(version) == [200, 200]
    assert "Traceback" not in process.log
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://127.0.0.1:{port}/health", timeout=PATIENCE)
    env = {**os.environ, "HEEDFUL_PORT": port, "HEEDFUL_TLS_CERT": str(cert)}
    subprocess.run(healthcheck, env=env, timeout=PATIENCE, check=True)

    def served() -> set[str]:
        return {ssl.get_server_certificate(address) for _ in range(8)}  # of every process

    before = cert.read_text()
    (tmp_path / "renewed").mkdir()
    renewed = issue(tmp_path / "renewed")
    renewed[0].replace(cert)  # its key is not there yet
    process.popen.send_signal(signal.SIGHUP)
    refused = "the certificate stays as it is: HEEDFUL_TLS_CERT and HEEDFUL_TLS_KEY: "
    wait_for(lambda: process.log.count(refused) == 2 or None, "a refusal")
    assert served() == {before}
    renewed[1].replace(key)
    process.popen.send_signal(signal.SIGHUP)
    wait_for(lambda: served() == {cert.read_text()} or None, "the new certificate")
    assert process.log.count(refused) == 2


def test_a_handshake_that_does_not_come_ends_after_the_head_timeout(
    start: Start, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    process = start(processes="1", head_timeout="0.2", tls_cert=str(cert), tls_key=str(key))
    wait_for(lambda: "startup complete" in process.log or None, "a listening service")
    port = process.log.partition("https://127.0.0.1:")[2].split()[0]
    with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as silent:
        assert silent.recv(1) == b""


def test_keys_of_tls_that_cannot_be_used(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
    check_tls(Settings(tls_cert=cert, tls_key=key))
    with pytest.raises(StartupError, match="HEEDFUL_TLS_CERT and HEEDFUL_TLS_KEY: a key without"):
        check_tls(Settings(tls_key=key))
    encrypted = tmp_path / "encrypted.pem"
    command = ["openssl", "pkey", "-in", str(key), "-out", str(encrypted)]
    command += ["-aes128", "-passout", "pass:sesame"]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    with pytest.raises(StartupError, match="the key is encrypted"):
        check_tls(Settings(tls_cert=cert, tls_key=encrypted))
