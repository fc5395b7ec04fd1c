"""Nothing refers to the documents and data that lay outside the repository once."""

import subprocess

from tests.process import ROOT

OUTSIDE = ("../" + "shared", "MODELS" + ".md", "API" + ".md")
"""A fresh clone does not have them."""
MAY_NAME_THEM = ("Makefile", ".ci/run")
"""They set HEEDFUL_DATA to the copy of the data that CI has."""


def test_nothing_outside_the_repository_is_referred_to() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        file = ROOT / name
        if name in MAY_NAME_THEM or not file.is_file() or file.is_symlink():
            continue
        content = file.read_bytes()
        for word in OUTSIDE:
            assert word.encode() not in content, f"{name} names {word}"
