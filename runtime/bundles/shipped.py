"""Where bundles and their parser are looked for when no folder is named."""

import os
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "heedful.bundles"
"""Entry points of packages that hold bundles; each is a function that gives their folder."""
HERE = Path("bundles")
VARIABLE = "HEEDFUL_MODELS"
PARSER = "parser"
REMEDY = (
    "install heedful-bundles, which is on no index: `make wheels` in a checkout builds it, "
    "then `pip install dist/heedful_bundles-*.whl`"
)
"""Where no bundle is found."""


def installed() -> list[Path]:
    """Folders of bundles that installed packages hold (the package heedful-bundles)."""
    return [Path(point.load()()) for point in entry_points(group=GROUP)]


def places() -> list[Path]:
    """Folders of bundles, in the order in which they are searched; not all need exist."""
    named = os.environ.get(VARIABLE)
    return [*([Path(named)] if named else []), HERE, *installed()]


def models_folder() -> Path:
    """`bundles` in the current folder, else an installed package's; `bundles` where neither exists."""
    return HERE if HERE.is_dir() else next(iter(installed()), HERE)


def parser_of(models: Path) -> Path:
    """The pipeline for the bundles in `models`: the folder `parser` there, else the first one in `places`.

    Where none exists, the first place, so that a message names it.
    """
    own = models / PARSER
    if own.is_dir():
        return own
    others = (place / PARSER for place in places())
    return next(filter(Path.is_dir, others), own)
