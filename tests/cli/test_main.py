"""The command line: its commands, what they import, and how errors are printed."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from heedful.cli import main as cli
from heedful.cli.errors import OTHER_EXTRAS, TRAIN_EXTRA, CommandError, describe
from heedful.models.registry import ENCODERS
from tests.cli.conftest import Command
from tests.process import ROOT, ran
from tests.shipped import BUNDLES, SHIPPED


def one_line(ended: CompletedProcess[str], said: str) -> None:
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(said)
    assert ended.stderr.count("\n") == 1


def test_a_fault_of_ours_is_not_dressed_as_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("ours")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(KeyError):
        cli.main()


def test_the_causes_of_an_error_follow_it_a_line_each_unless_the_message_quotes_them() -> None:
    error, cause = CommandError("the bundle is broken: no such file"), RuntimeError("it failed")
    first = ValueError("node 3:\n  no kernel")
    error.__cause__, cause.__cause__ = cause, first
    first.__cause__ = FileNotFoundError(2, "no such file")
    assert describe(error).splitlines() == [
        "heedful: the bundle is broken: no such file",
        "caused by: RuntimeError: it failed",
        "caused by: ValueError: node 3: no kernel",
    ]


@pytest.fixture(scope="module")
def serving_install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose modules hide what the extras install."""
    folder = tmp_path_factory.mktemp("hidden")
    # Since issue 65 nothing keeps spaCy from importing its own command line, which brings and imports httpx.
    for name in (TRAIN_EXTRA | OTHER_EXTRAS.keys()) - {"httpx"}:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    return folder


EXTRA = "needs the training extra: make dev, or pip install 'heedful[train]'\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("list --encoders", f"list {EXTRA}"),
        ("train configs/ms-san-sst2.toml", f"train {EXTRA}"),
        ("fit tests/cli/tickets.csv --out none", f"fit {EXTRA}"),
        # It reads the file before it imports torch.
        ("fit tests/cli/tickets.csv --out none --text-column Text", "tickets.csv:1: no column"),
    ],
)
def test_a_command_that_needs_the_training_extra_says_so(
    serving_install: Path, arguments: str, said: str
) -> None:
    one_line(
        ran(sys.executable, "-m", "heedful", *arguments.split(), PYTHONPATH=str(serving_install)),
        f"heedful: {said}",
    )


HELP = """
import sys
from heedful.cli import main

for command in ["", *sys.argv[1:]]:
    sys.argv[1:] = [*command.split(), "--help"]
    try:
        main.main()
    except SystemExit as end:
        assert not end.code, end.code
import heedful.cli.embed, heedful.cli.explain, heedful.cli.predict, heedful.cli.selftest
"""


def test_help_and_the_commands_that_serve_need_no_extra(serving_install: Path) -> None:
    run = ran(sys.executable, "-c", HELP, *cli.COMMANDS, PYTHONPATH=str(serving_install))
    assert run.returncode == 0, run.stderr
    assert all(f"Example: heedful {name}" in run.stdout for name in cli.COMMANDS)


BLAS = """
import os, sys
sys.modules["heedful.app.process.serve"] = None  # the command ends where it would serve
from heedful.cli.main import main
sys.argv = ["heedful", "serve"]
try:
    main()
except ImportError:
    assert "numpy" not in sys.modules
    print(os.environ["OPENBLAS_NUM_THREADS"])
"""


def test_blas_has_one_thread_unless_the_environment_says_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert ran(sys.executable, "-c", BLAS).stdout == "1\n"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    assert ran(sys.executable, "-c", BLAS).stdout == "2\n"


def test_the_help_is_one_screen_in_four_groups(heedful: Command) -> None:
    shown = heedful("--help").stdout
    assert shown == heedful().stdout
    lines = shown.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line in cli.GROUPS] == ["Use", "Make", "Share", "Check"]
    assert [line.split()[0] for line in lines if line.startswith("  ")] == cli.COMMANDS
    assert heedful("--version").stdout == f"heedful {version('heedful')}\n"


@pytest.mark.parametrize(("name", "said"), [("train", "stopped: with --resume it"), ("list", "")])
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


def test_list_has_every_encoder(heedful: Command) -> None:
    shown = heedful("list", "--encoders").stdout
    rows = json.loads(heedful("list", "--encoders", "--json").stdout)
    assert [row["name"] for row in rows] == list(ENCODERS)
    assert all(row["name"] in shown for row in rows)
    assert {"values", "parameters", "with NLI head"} <= rows[0].keys()


def test_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "heedful", "list", "--json"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode != 0
    assert ended.stderr.startswith(b"heedful: [Errno 28] No space left on device")
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "said"),
    [
        ("stdin", "embed - --model tiny-flat --out v.npy", "input is closed: name a file"),
        ("stdout", "predict t.txt --model tiny-sst2 --out -", "output is closed: set --out"),
    ],
)
def test_a_stream_that_is_closed_is_one_line(
    heedful: Command, models: Path, tmp_path: Path, closed: str, arguments: str, said: str
) -> None:
    (tmp_path / "t.txt").write_text("A dog barks.\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setattr(sys, closed, None)  # as Python starts with its descriptor closed
        refused = heedful(*arguments.split(), "--models", models)
    assert refused.returncode == 1
    assert said in refused.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["t.txt"]


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        ("embed - --out v.parquet", "parquet"),
        ("embed t.parquet --out v.npy", "parquet"),
        ("embed t.parquet --out v --id-column id --ray=local", "ray"),
        ("predict t.parquet --out v --id-column id --ray auto", "ray"),
    ],
)
def test_parquet_and_ray_without_pyarrow_name_the_extra_before_the_models_are_loaded(
    heedful: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, extra: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    monkeypatch.delitem(sys.modules, "heedful.cli.ray_run", raising=False)
    refused = heedful(*arguments.split(), "--models", "nowhere")
    remedy = f"make dev, or pip install 'heedful[{extra}]'\n"
    one_line(refused, f"heedful: this needs the extra {extra}: {remedy}")
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
