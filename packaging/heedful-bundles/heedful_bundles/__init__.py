"""The shipped models of Heedful and their parser; `heedful` finds them through an entry point."""

from pathlib import Path


def folder() -> Path:
    """The folder of the bundles."""
    return Path(__file__).parent / "bundles"
