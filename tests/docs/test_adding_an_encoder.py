"""docs/adding-an-encoder.md, done: the encoder on its page is trained, exported and read back."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.runtime.bundles.bundle import read
from tests.builders import build_parser
from tests.process import ROOT

PAGE = (ROOT / "docs/adding-an-encoder.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"\n`([^`\n]+)`\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
COPIED = ("configs", *sorted(path.parent.name for path in ROOT.glob("*/__init__.py")))
TREES = (
    "(3 (2 A) (3 (3 good) (2 film)))",
    "(1 (2 A) (1 (1 bad) (2 film)))",
    "(4 (2 The) (4 (3 best) (2 film)))",
    "(0 (2 The) (0 (0 worst) (2 film)))",
)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the page's encoder, a small parser and a small treebank."""
    folder = tmp_path_factory.mktemp("heedful")
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored, symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in FILES.items():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{text}" if name == "models/registry.py" else text)
    build_parser(folder / "parser")
    for split in ("train", "dev", "test"):
        file = folder / f"data/trees/{split}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(TREES) + "\n")
    config = folder / "configs/swem-sst2.toml"
    words = '\n[words]\nvectors = "words.txt"\ndim = 4\nmin_count = 1\n'
    config.write_text(config.read_text() + words)
    (folder / "words.txt").write_text("film 1 0 0 1\ngood 0 1 0 1\nbad 0 0 1 1\n")
    return folder


def test_the_page_names_three_files() -> None:
    assert list(FILES) == ["models/swem.py", "models/registry.py", "configs/swem-sst2.toml"]


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed_trained_and_exported(changed: Path) -> None:
    assert "swem" in run(changed, "heedful", "list", "--encoders", "--json")
    options = ("--data", "data", "--parser", "parser")
    run(changed, "heedful", "train", "configs/swem-sst2.toml", *options)
    out = ("--out", "bundles/swem-sst2")
    assert "accuracy on sst dev" in run(
        changed, "heedful", "export", "runs/swem-sst2", *out, *options
    )
    card = read(changed / "bundles/swem-sst2").card
    assert (card.encoder.name, card.dimension, card.cost) == ("swem", 8, "linear")
