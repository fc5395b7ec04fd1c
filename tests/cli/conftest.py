"""A folder of tiny bundles, and the command line in this process."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from heedful.cli import main as cli
from heedful.training import tasks
from tests.builders import build_bundle, build_models
from tests.writing import put

tasks.add("tools.tasks")


Command = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As for all tests, and a model whose texts may have several labels."""
    folder = tmp_path_factory.mktemp("models") / "bundles"
    parser = build_models(folder)
    build_bundle(folder, parser, name="tiny-several", multi_label=True, explain=True)
    return folder


@pytest.fixture
def heedful(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process, which has imported already what takes a command seconds."""
    monkeypatch.setenv("COLUMNS", "120")
    signals = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def run(*arguments: str | Path) -> CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["heedful", *map(str, arguments)])
        capsys.readouterr()
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        shown = capsys.readouterr()
        for number, handler in signals.items():
            signal.signal(number, handler)  # `serve` sets its own first, and blocks them
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if isinstance(code, str):  # which Python prints as it exits
            return CompletedProcess(arguments, 1, shown.out, f"{shown.err}{code}\n")
        return CompletedProcess(arguments, int(str(code or 0)), shown.out, shown.err)

    return run


def write_glove(folder: Path) -> Path:
    """A file of word vectors of three values."""
    words = {"good": 1, "great": 1, "fine": 1, "bad": -1, "awful": -1, "poor": -1, "film": 0}
    rows = [f"{word} {value} 0.5 0.{i}\n" for i, (word, value) in enumerate(words.items())]
    return put(folder, "glove.txt", "".join(rows))
