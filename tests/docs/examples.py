"""The examples of a page: its commands, the answers that it shows below them, and how to run them."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.process import ROOT, output

_SHELL = re.compile(r"```sh\n(.*?)```(?:\n\n```json\n(.*?)```)?", re.DOTALL)
_INDENTED = re.compile(r"\n\n((?:    \S.*\n)+)")
SERVED_AT = "localhost:8000"
NEAR = 0.02


@dataclass(frozen=True)
class Example:
    command: str
    answer: Any = None
    """The JSON below the command; None where the page shows none."""


def examples(page: str) -> list[Example]:
    """The shell blocks of a page, in order: fenced ones, then indented ones."""
    fenced = [
        Example(command, json.loads(answer) if answer else None)
        for command, answer in _SHELL.findall(page)
    ]
    return fenced + [Example(command) for command in _INDENTED.findall(page)]


def requests(page: str) -> list[Example]:
    """The examples that ask the service."""
    return [example for example in examples(page) if example.command.startswith("curl")]


def run(command: str, *, url: str = "", folder: Path = ROOT) -> str:
    """Run a command in `folder`: a curl asks the service at `url`, `heedful` is this checkout's.

    Returns stdout.
    """
    here = command.replace(SERVED_AT, url.removeprefix("http://"))
    here = re.sub("^heedful ", f"{sys.executable} -m heedful ", here, flags=re.MULTILINE)
    return output("sh", "-e", "-c", here, cwd=folder, PYTHONPATH=str(ROOT))


def alike(answer: Any, shown: Any) -> bool:
    """Whether an answer is what a page shows. Floats may differ a little: another processor's kernels move them."""
    if type(answer) is not type(shown):
        return False
    if isinstance(shown, dict):
        same = answer.keys() == shown.keys()
        return same and all(alike(answer[key], shown[key]) for key in shown)
    if isinstance(shown, list):
        return len(answer) == len(shown) and all(map(alike, answer, shown))
    return abs(answer - shown) < NEAR if isinstance(shown, float) else bool(answer == shown)


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    section = re.split(r"\n#+ ", page.split(f" {heading}\n", 1)[1])[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
