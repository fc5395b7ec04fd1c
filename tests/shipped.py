"""The bundles that git holds: those in `bundles/` that are not made there out of `adapters/`."""

from pathlib import Path

from tests.process import ROOT

BUNDLES = ROOT / "bundles"
MADE = frozenset(adapter.name for adapter in ROOT.glob("adapters/*"))
SHIPPED = sorted({card.parent.name for card in BUNDLES.glob("*/card.json")} - MADE)


def link_shipped(folder: Path) -> Path:
    """Make the folder, with links to these bundles and their parser."""
    folder.mkdir()
    for name in (*SHIPPED, "parser"):
        (folder / name).symlink_to(BUNDLES / name)
    return folder
