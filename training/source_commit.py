"""The commit of the source code, for records."""

import subprocess
from pathlib import Path


def source_commit() -> str:
    """The commit of the source, with the suffix "-dirty" where tracked files have uncommitted changes.

    Changes of records and pages, which runs write, do not count. "" where git is not installed or the source is not in
    a repository.
    """
    tree = ("--", ":/", ":!/results", ":!/docs")
    commit = _git("describe", "--always", "--abbrev=12")
    changed = _git("status", "--porcelain", "--untracked-files=no", *tree)
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    try:
        git = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return git.stdout.strip()
