"""One virtual environment per peer, created once: ~/.cache/heedful/peers/<name>."""

import subprocess
import sys
from pathlib import Path

HOME = Path("~/.cache/heedful/peers").expanduser()
REQUIREMENTS = Path(__file__).with_name("peers")
INSTALLED = "installed.txt"


class NotInstalled(Exception):
    """An environment could not be created; the message is pip's last line."""


def python(name: str) -> Path:
    """The interpreter of the environment for peers/<name>.txt, of this process's Python. Raises NotInstalled."""
    folder, wanted = HOME / name, REQUIREMENTS / f"{name}.txt"
    interpreter, installed = folder / "bin" / "python", folder / INSTALLED
    content = f"# Python {sys.version}\n{wanted.read_text()}"
    if installed.exists() and installed.read_text() == content:
        return interpreter
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run(sys.executable, "-m", "venv", "--clear", folder)
    pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    # torch first: pip then takes the index's CPU build and downloads no other.
    for line in wanted.read_text().splitlines():
        if line.startswith("torch=="):
            _run(*pip, line)
    _run(*pip, "--requirement", wanted)
    installed.write_text(content)
    return interpreter


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
