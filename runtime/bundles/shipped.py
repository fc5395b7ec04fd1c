"""The folders in which bundles and their parser are sought when the user names none."""

import os
from importlib.metadata import entry_points
from pathlib import Path

from heedful.runtime.bundles.card import CARD

LOCAL_FOLDER = Path("bundles")
VARIABLE = "HEEDFUL_MODELS"
PARSER = "parser"
REMEDY = (
    "install heedful-bundles, which is on no index: `make wheels` in a checkout builds it, "
    "then `pip install dist/heedful_bundles-*.whl`"
)
"""How to get bundles, for messages."""


def installed() -> list[Path]:
    """Folders of bundles that installed packages hold (the package heedful-bundles)."""
    # Each entry point is a function that returns a folder.
    return [Path(point.load()()) for point in entry_points(group="heedful.bundles")]


def search_folders() -> list[Path]:
    """Folders of bundles, in the order in which they are searched; not all need exist."""
    folder = os.environ.get(VARIABLE)
    return [*([Path(folder)] if folder else []), LOCAL_FOLDER, *installed()]


def models_folder() -> Path:
    """`bundles` in the current folder, else an installed package's; `bundles` where neither exists."""
    return LOCAL_FOLDER if LOCAL_FOLDER.is_dir() else next(iter(installed()), LOCAL_FOLDER)


def left_out(models: Path) -> dict[Path, list[str]]:
    """The installed folders of bundles -> the names of those bundles of theirs that the folder `models` lacks."""
    lacking: dict[Path, list[str]] = {}
    for folder in installed():
        for card in sorted(folder.glob(f"*/{CARD}")):
            if not (models / card.parent.name / CARD).is_file():
                lacking.setdefault(folder, []).append(card.parent.name)
    return lacking


def parser_folder(models: Path) -> Path:
    """The pipeline for the bundles in `models`: the folder `parser` there, else the first in `search_folders`.

    Where none exists, the former, so that a message names it.
    """
    default = models / PARSER
    candidates = [default, *(folder / PARSER for folder in search_folders())]
    return next(filter(Path.is_dir, candidates), default)
