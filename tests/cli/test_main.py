"""The command line: its commands, the flags of `serve`, and how errors are printed."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from heedful.app.settings import Settings, flag_name
from heedful.cli import main as cli
from heedful.cli.errors import OTHER_EXTRAS, TRAIN_EXTRA, CommandError, describe
from heedful.cli.explain import read_priors
from heedful.models.registry import ENCODERS
from heedful.runtime.device import resolve
from heedful.runtime.errors import BadInput
from tests.process import ROOT
from tests.shipped import SHIPPED

Command = Callable[..., "Ended"]


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

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["heedful", *arguments])
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


def started(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    """The command line as a process; `path` is a folder to import from first."""
    return subprocess.run(
        [sys.executable, "-m", "heedful", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


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


@pytest.mark.skipif(resolve("auto") == "cuda", reason="there is a GPU")
@pytest.mark.parametrize(
    "config", ["configs/ms-san-snli.toml", "configs/teachers/minilm-sst2.toml"]
)
def test_training_on_a_gpu_that_is_not_there_is_one_line(
    heedful: Command, config: str, tmp_path: Path
) -> None:
    refused = heedful("train", config, "--device", "cuda", "--run", str(tmp_path / "run"))
    assert refused.returncode == 1
    assert refused.stderr == (
        "heedful: device is cuda, but torch sees no GPU: train with --device cpu\n"
    )
    assert not (tmp_path / "run").exists()


def test_a_fault_of_ours_is_not_dressed_as_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("ours")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(KeyError):
        cli.main()


def test_the_causes_of_an_error_follow_it_a_line_each() -> None:
    def raise_all() -> None:
        try:
            try:
                raise ValueError("node 3:\n  no kernel")
            except ValueError as error:
                raise RuntimeError("the session failed") from error
        except RuntimeError as error:
            raise CommandError("the bundle is broken") from error

    with pytest.raises(CommandError) as caught:
        raise_all()
    assert describe(caught.value).splitlines() == [
        "heedful: the bundle is broken",
        "caused by: RuntimeError: the session failed",
        "caused by: ValueError: node 3: no kernel",
    ]


def test_a_cause_that_the_message_quotes_is_not_repeated(tmp_path: Path) -> None:
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
    [
        ("list", "--encoders"),
        ("train", "configs/ms-san-sst2.toml"),
        ("fit", "tests/cli/tickets.csv", "--out", "none"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_that_needs_the_training_extra_says_so(
    serving_install: Path, arguments: tuple[str, ...]
) -> None:
    refused = started(*arguments, path=serving_install)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"heedful: {arguments[0]} needs the training extra: "
        "make dev, or pip install 'heedful[train]'\n"
    )
    assert refused.stdout == ""


def test_the_serving_commands_need_no_extra(serving_install: Path) -> None:
    commands = ("main", "serve", "embed", "predict", "explain", "list", "selftest")
    program = "; ".join(f"import heedful.cli.{name}" for name in commands)
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(serving_install)},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("command", [[], ["serve"]])
def test_help_and_serve_import_nothing_heavy(command: list[str]) -> None:
    heavy = {"torch", "onnx", "sklearn", "heedful.training.loop"}
    program = (
        f"import sys; from heedful.cli.main import main; sys.argv[1:] = {[*command, '--help']}\n"
        f"try: main()\nexcept SystemExit: sys.exit(' '.join({heavy} & set(sys.modules)) or None)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_fit_reads_the_file_before_it_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Text,label\nbad,neg\n")
    program = (
        "import sys; from heedful.cli.main import main; sys.argv[1:] = ['fit', 't.csv', '--out', 'o']\n"
        "try: main()\nexcept SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "did you mean 'Text'?; set --text-column" in run.stdout
    assert run.stdout.endswith(" False\n")


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
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    assert named == cli.COMMANDS


def test_the_version_is_that_of_the_package(heedful: Command) -> None:
    assert heedful("--version").stdout == f"heedful {version('heedful')}\n"


def test_list_has_every_bundle_with_its_use_and_licence(heedful: Command) -> None:
    table = heedful("list", "--models", "bundles").stdout
    rows = json.loads(heedful("list", "--models", "bundles", "--json").stdout)
    assert [row["name"] for row in rows] == sorted(SHIPPED)
    for row in rows:
        card = json.loads((ROOT / "bundles" / row["name"] / "card.json").read_text())
        assert (row["kind"], row["licence"]) == (card["kind"], card["licence"])
        assert all(label in row["use"] for label in card["labels"] if row["kind"] != "nli")
        assert f" {row['name']} " in table


def test_list_without_a_bundle_says_how_to_get_one(heedful: Command, tmp_path: Path) -> None:
    shown = heedful("list", "--models", str(tmp_path))
    assert shown.returncode == 0
    assert "heedful pull OWNER/NAME" in shown.stdout


def test_list_has_every_encoder(heedful: Command) -> None:
    shown = heedful("list", "--encoders")
    rows = {row["name"]: row for row in json.loads(heedful("list", "--encoders", "--json").stdout)}
    assert list(rows) == list(ENCODERS)
    assert all(name in shown.stdout for name in rows)
    ms_san = rows["ms-san"]
    assert (ms_san["values"], ms_san["parameters"]) == (600, 1_082_100)
    assert ms_san["with NLI head"] == 1_803_303
