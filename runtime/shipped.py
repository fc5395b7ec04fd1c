"""Where bundles and their parser are when nobody names a folder."""

from importlib.metadata import entry_points
from pathlib import Path

GROUP = "heedful.bundles"
"""Entry points of packages that hold bundles; each is a function that gives their folder."""
HERE = Path("bundles")
PARSER = "parser"


def installed() -> list[Path]:
    """Folders of bundles that installed packages hold (the package heedful-bundles)."""
    return [Path(point.load()()) for point in entry_points(group=GROUP)]


def models_folder() -> Path:
    """`bundles` in the current folder, else an installed package's; `bundles` where neither exists."""
    return HERE if HERE.is_dir() else next(iter(installed()), HERE)


def parser_of(models: Path) -> Path:
    """The pipeline for the bundles in `models`: the folder `parser` there, else the one among the other bundles.

    Where none exists, the first place, so that a message names it.
    """
    own = models / PARSER
    if own.is_dir():
        return own
    other = models_folder() / PARSER
    return other if other.is_dir() else own
