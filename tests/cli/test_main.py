"""The command line: its commands, what they import, and how errors are printed."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from heedful.app.settings import Settings, flag_name
from heedful.cli import main as cli
from heedful.cli.errors import OTHER_EXTRAS, TRAIN_EXTRA, CommandError, describe
from heedful.cli.explain import read_priors
from heedful.library import catalogue
from heedful.models.registry import ENCODERS
from heedful.runtime.device import resolve
from heedful.runtime.errors import BadInput
from tests.process import PATIENCE, ROOT
from tests.shipped import BUNDLES, SHIPPED

Command = Callable[..., "Ended"]
TRY = "import sys; from heedful.cli.main import main; sys.argv[1:] = {}\ntry: main()\nexcept SystemExit"


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def heedful(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process, which has imported already what takes a command seconds."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(ROOT)
    signals = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}

    def run(*arguments: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["heedful", *map(str, arguments)])
        capsys.readouterr()
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        shown = capsys.readouterr()
        for number, handler in signals.items():
            signal.signal(number, handler)  # `serve` sets its own first
        if isinstance(code, str):  # which Python prints as it exits
            return Ended(1, shown.out, f"{shown.err}{code}\n")
        return Ended(int(str(code or 0)), shown.out, shown.err)

    return run


def python(*arguments: str, cwd: Path = ROOT, path: Path | None = None) -> Ended:
    """Python in a process of its own; `path` is a folder to import from first."""
    own = {"PYTHONPATH": str(path)} if path else {}
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def one_line(ended: Ended, said: str) -> None:
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(said)
    assert ended.stderr.count("\n") == 1


def test_help_lists_every_setting(heedful: Command) -> None:
    shown = heedful("serve", "--help")
    assert shown.returncode == 0
    for field in Settings.model_fields:
        assert flag_name(field) in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "http"), "heedful: HEEDFUL_PORT (--port): 'http' is invalid"),
        (("--api-key", "two words"), "heedful: HEEDFUL_API_KEY (--api-key): use printable ASCII"),
    ],
)
def test_a_wrong_flag_is_one_line(heedful: Command, arguments: tuple[str, ...], said: str) -> None:
    one_line(heedful("serve", *arguments), said)


def test_a_busy_port_is_one_line(heedful: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = heedful("serve", "--port", port, "--models", tmp_path)
    one_line(refused, f"heedful: cannot listen on 127.0.0.1:{port}: ")
    assert refused.stderr.endswith("set another HEEDFUL_PORT or HEEDFUL_HOST\n")


def test_a_folder_that_is_not_there_is_said_before_it_listens(tmp_path: Path) -> None:
    arguments = ("-m", "heedful", "serve", "--port", "0", "--models", "nowhere")
    refused = python(*arguments, cwd=tmp_path)
    one_line(refused, "heedful: there is no folder nowhere: name one that holds bun")
    assert "pip install dist/heedful_bundles" in refused.stderr


@pytest.mark.skipif(resolve("auto") == "cuda", reason="there is a GPU")
@pytest.mark.parametrize("config", ["ms-san-snli", "teachers/minilm-sst2"])
def test_training_on_a_gpu_that_is_not_there_is_one_line(
    heedful: Command, config: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    refused = heedful("train", f"configs/{config}.toml", "--device", "cuda", "--run", run)
    one_line(refused, "heedful: device is cuda, but torch sees no GPU: train with --device cpu\n")
    assert not run.exists()


def test_a_fault_of_ours_is_not_dressed_as_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("ours")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(KeyError):
        cli.main()


def test_the_causes_of_an_error_follow_it_a_line_each_unless_the_message_quotes_them() -> None:
    error, cause = CommandError("the bundle is broken"), RuntimeError("the session failed")
    error.__cause__, cause.__cause__ = cause, ValueError("node 3:\n  no kernel")
    assert describe(error).splitlines() == [
        "heedful: the bundle is broken",
        "caused by: RuntimeError: the session failed",
        "caused by: ValueError: node 3: no kernel",
    ]
    error = CommandError("cannot read x: No such file or directory")
    error.__cause__ = FileNotFoundError(2, "No such file or directory")
    assert describe(error) == "heedful: cannot read x: No such file or directory"
    assert describe(CommandError("alone")) == "heedful: alone"
    with pytest.raises(BadInput) as caught:
        read_priors("word=1")
    assert describe(caught.value) == f"heedful: {caught.value}"


@pytest.fixture(scope="module")
def serving_install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose modules hide what the extras install."""
    folder = tmp_path_factory.mktemp("hidden")
    # Since issue 65 nothing keeps spaCy from importing its own command line, which brings and imports httpx.
    for name in (TRAIN_EXTRA | OTHER_EXTRAS.keys()) - {"httpx"}:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    return folder


@pytest.mark.parametrize(
    "arguments",
    ["list --encoders", "train configs/ms-san-sst2.toml", "fit tests/cli/tickets.csv --out none"],
)
def test_a_command_that_needs_the_training_extra_says_so(
    serving_install: Path, arguments: str
) -> None:
    command, *options = arguments.split()
    refused = python("-m", "heedful", command, *options, path=serving_install)
    remedy = "make dev, or pip install 'heedful[train]'\n"
    one_line(refused, f"heedful: {command} needs the training extra: {remedy}")


@pytest.mark.parametrize("name", ["train", "fit", "distill", "tune", "import"])
def test_help_needs_no_training_extra(serving_install: Path, name: str) -> None:
    shown = python("-m", "heedful", name, "--help", path=serving_install)
    assert shown.returncode == 0, shown.stderr
    assert f"Example: heedful {name}" in shown.stdout


def test_the_serving_commands_need_no_extra(serving_install: Path) -> None:
    commands = ("main", "serve", "embed", "predict", "explain", "list", "selftest")
    program = "; ".join(f"import heedful.cli.{name}" for name in commands)
    run = python("-c", program, path=serving_install)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("command", [[], ["serve"]])
def test_help_and_serve_import_nothing_heavy(command: list[str]) -> None:
    heavy = {"torch", "onnx", "sklearn", "heedful.training.loop"}
    imported = f": sys.exit(' '.join({heavy} & set(sys.modules)) or None)"
    run = python("-c", TRY.format([*command, "--help"]) + imported)
    assert run.returncode == 0, run.stderr


def test_fit_reads_the_file_before_it_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Text,label\nbad,neg\n")
    imported = " as end: print(end.code, 'torch' in sys.modules)"
    program = TRY.format(["fit", "t.csv", "--out", "o"]) + imported
    run = python("-c", program, cwd=tmp_path)
    assert "did you mean 'Text'?; set --text-column" in run.stdout
    assert run.stdout.endswith(" False\n")


BLAS = """
import json, sys, types

def serve(settings):
    import numpy, threadpoolctl
    found = threadpoolctl.threadpool_info()
    print(json.dumps([one["num_threads"] for one in found if one["user_api"] == "blas"]))

serving = types.ModuleType("heedful.app.process.serve")
serving.serve = serve
sys.modules[serving.__name__] = serving
sys.argv = ["heedful", "serve"]
from heedful.cli.main import main
main()
"""


@pytest.mark.parametrize(("setting", "threads"), [("", 1), ("2", 2)])
def test_blas_has_one_thread_unless_the_environment_says_more(
    setting: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if setting:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", setting)
    run = python("-c", BLAS)
    assert run.returncode == 0, run.stderr
    # OpenBLAS starts no more than there are cores.
    assert json.loads(run.stdout) == [min(threads, len(os.sched_getaffinity(0)))]


def test_the_list_of_commands_agrees_with_their_files() -> None:
    folder = Path(cli.__file__).parent
    files = {file.stem for file in folder.glob("*.py") if "\ndef command(" in file.read_text()}
    assert files == set(cli.COMMANDS)


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_the_help_is_one_screen_in_four_groups(
    heedful: Command, arguments: tuple[str, ...]
) -> None:
    shown = heedful(*arguments)
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line in cli.GROUPS] == ["Use", "Make", "Share", "Check"]
    assert [line.split()[0] for line in lines if line.startswith("  ")] == cli.COMMANDS
    assert heedful("--version").stdout == f"heedful {version('heedful')}\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tune", "stopped: the same command goes on where it was"),
        ("distill", "stopped: the same command goes on where it was"),
        ("train", "stopped: with --resume it goes on"),
        ("fit", "stopped: the same command starts over"),
        ("list", ""),
    ],
)
def test_ctrl_c_says_how_to_go_on(
    heedful: Command, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module(f"heedful.cli.{name}"), "command", interrupted)
    ended = heedful(name)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.startswith(f"heedful: {said}" if said else "")
    assert ended.stderr.count("\n") == bool(said)


def test_list_has_every_bundle_with_its_use_and_licence(heedful: Command, tmp_path: Path) -> None:
    table = heedful("list", "--models", "bundles").stdout
    rows = json.loads(heedful("list", "--models", "bundles", "--json").stdout)
    assert [row["name"] for row in rows] == sorted(SHIPPED)
    for row in rows:
        card = json.loads((BUNDLES / row["name"] / "card.json").read_text())
        assert (row["kind"], row["licence"]) == (card["kind"], card["licence"])
        assert all(label in row["use"] for label in card["labels"] if row["kind"] != "nli")
        assert f" {row['name']} " in table
        assert any(row["licence"] in line and row["use"] in line for line in table.splitlines())
    assert "heedful pull OWNER/NAME" in heedful("list", "--models", tmp_path).stdout


def test_list_in_a_narrow_terminal_cuts_nothing() -> None:
    """Of a pseudo-terminal with 80 columns."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-m", "heedful", "list", "--models", "bundles"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(command, cwd=ROOT, stdout=theirs, env=environment) as popen:
        os.close(theirs)
        written = b""
        with contextlib.suppress(OSError):  # at the end of a pseudo-terminal's output
            while part := os.read(ours, 65536):
                written += part
        os.close(ours)
    assert popen.returncode == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", written.decode()).splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    words = set(" ".join(lines).split())
    for row in catalogue.bundles("bundles"):
        assert words >= set(f"{row['name']} {row['licence']} {row['use']}".split())


def test_list_has_every_encoder(heedful: Command) -> None:
    shown = heedful("list", "--encoders")
    rows = {row["name"]: row for row in json.loads(heedful("list", "--encoders", "--json").stdout)}
    assert list(rows) == list(ENCODERS)
    assert all(name in shown.stdout for name in rows)
    ms_san = rows["ms-san"]
    assert (ms_san["values"], ms_san["parameters"]) == (600, 1_082_100)
    assert ms_san["with NLI head"] == 1_803_303


def test_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "heedful", "list", "--json"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode != 0
    assert ended.stderr.startswith(b"heedful: [Errno 28] No space left on device")
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("out", ["t.txt/vectors.npy", "t.txt/two/vectors.npy", "x" * 300 + ".npy"])
def test_a_folder_that_cannot_be_made_is_one_line(
    heedful: Command, tmp_path: Path, out: str
) -> None:
    (tmp_path / "t.txt").write_text("A dog barks.\n")
    refused = heedful("embed", tmp_path / "t.txt", "--out", tmp_path / out)
    one_line(refused, "heedful: ")
    assert "[Errno" in refused.stderr or "cannot write" in refused.stderr
    assert out[:5] in refused.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "said"),
    [
        ("stdin", "embed - --model tiny-flat --out v.npy", "input is closed: name a file"),
        ("stdin", "predict - --model tiny-sst2 --out p.csv", "input is closed: name a file"),
        ("stdout", "embed t.txt --model tiny-flat --out -", "output is closed: set --out"),
        ("stdout", "predict t.txt --model tiny-sst2 --out -", "output is closed: set --out"),
    ],
)
def test_a_stream_that_is_closed_is_one_line(
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    closed: str,
    arguments: str,
    said: str,
) -> None:
    (tmp_path / "t.txt").write_text("A dog barks.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["heedful", *arguments.split(), "--models", str(models)])
    monkeypatch.setattr(sys, closed, None)  # as Python starts with its descriptor closed
    with pytest.raises(SystemExit, match=said):
        cli.main()
    assert [file.name for file in tmp_path.iterdir()] == ["t.txt"]
