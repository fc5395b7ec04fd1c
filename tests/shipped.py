"""The bundles that git holds: those in `bundles/` that are not made there out of `adapters/`."""

from benchmarks.processes import shipped
from tests.process import ROOT

BUNDLES = ROOT / "bundles"
MADE = frozenset(adapter.name for adapter in ROOT.glob("adapters/*"))
SHIPPED = [name for name in shipped(BUNDLES) if name not in MADE]
