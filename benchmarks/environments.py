"""One virtual environment per peer, created once: ~/.cache/heedful/peers/<name>."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path("~/.cache/heedful/peers").expanduser()
REQUIREMENTS = Path(__file__).with_name("peers")
INSTALLED = "installed.txt"
_NEWEST = re.compile(r"# Python 3\.(\d+) at most")


class NotInstalled(Exception):
    """An environment could not be created; the message is pip's last line."""


def python(name: str) -> Path:
    """The interpreter of the environment for peers/<name>.txt. Raises NotInstalled.

    Its Python is this process's, or an older one where the file says so.
    """
    folder, requirements = HOME / name, REQUIREMENTS / f"{name}.txt"
    interpreter, installed = folder / "bin" / "python", folder / INSTALLED
    base = _base(requirements.read_text())
    content = f"# {_run(base, '-VV').strip()}\n{requirements.read_text()}"
    if installed.exists() and installed.read_text() == content:
        return interpreter
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run(base, "-m", "venv", "--clear", folder)
    pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    # torch first: pip then takes the index's CPU build and downloads no other.
    for line in requirements.read_text().splitlines():
        if line.startswith("torch=="):
            _run(*pip, line)
    _run(*pip, "--requirement", requirements)
    installed.write_text(content)
    return interpreter


def _base(requirements: str) -> str:
    """The Python of the environment."""
    newest = _NEWEST.match(requirements)
    if newest is None or sys.version_info[:2] <= (3, int(newest[1])):
        return sys.executable
    for minor in range(11, int(newest[1]) + 1):
        if interpreter := shutil.which(f"python3.{minor}"):
            return interpreter
    raise NotInstalled(f"it needs a Python of 3.11 to 3.{newest[1]}")


def version(name: str, package: str) -> str:
    """The version of a package in an existing environment."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return _run(python(name), "-c", code).strip()


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise NotInstalled(last[0])
    return done.stdout
