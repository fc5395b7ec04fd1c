"""The command line of `serve`: its flags are the settings."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.app.settings import Settings, flag_name
from heedful.cli import main as cli
from heedful.models.registry import ENCODERS
from tests.process import ROOT


def heedful(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "heedful", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_lists_every_setting() -> None:
    shown = heedful("serve", "--help")
    assert shown.returncode == 0
    for field in Settings.model_fields:
        assert flag_name(field) in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "http"), "heedful: HEEDFUL_PORT (--port): 'http' is wrong"),
        (("--api-key", "two words"), "heedful: HEEDFUL_API_KEY (--api-key): use printable ASCII"),
    ],
)
def test_a_wrong_flag_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    refused = heedful("serve", *arguments)
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith(said)
    assert refused.stderr.count("\n") == 1


def test_a_busy_port_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ["heedful", "serve", "--port", port, "--models", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as caught:
            cli.main()
    said = str(caught.value.code)
    assert said.startswith(f"heedful: cannot listen on 127.0.0.1:{port}: ")
    assert said.endswith("set another HEEDFUL_PORT or HEEDFUL_HOST")


def test_a_fault_of_ours_is_not_dressed_as_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("ours")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(KeyError):
        cli.main()


def test_models_lists_every_encoder() -> None:
    shown = heedful("models")
    assert shown.returncode == 0
    listed = json.loads(heedful("models", "--json").stdout)
    assert list(listed) == list(ENCODERS)
    assert all(name in shown.stdout for name in listed)
    assert listed["ms-san"] == {
        "paper": ENCODERS["ms-san"].paper,
        "dim": 600,
        "encoder": 1_082_100,
        "with_nli_head": 1_803_303,
    }


def test_an_unknown_flag_is_refused() -> None:
    assert heedful("serve", "--colour", "red").returncode == 2
