"""docs/adding-an-encoder.md, done: the encoder on its page is registered, configured and exported."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from heedful.export.bundle import make_bundle
from heedful.models import registry
from heedful.runtime.bundles.card import ParserCard
from heedful.training import config, tasks
from tests.export.trained import DIM, classifier
from tests.process import ROOT

tasks.add("")
PAGE = (ROOT / "docs/adding-an-encoder.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"\n`([^`\n]+)`\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))


def test_its_files_are_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The export compares its graphs with torch."""
    module = ModuleType("heedful.models.swem")
    exec(FILES["models/swem.py"], module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(registry.ENCODERS, "swem", registry.ENCODERS["ms-san"])
    exec(FILES["models/registry.py"], {**vars(registry)})
    (tmp_path / "swem-sst2.toml").write_text(FILES["configs/swem-sst2.toml"])
    assert config.read(tmp_path / "swem-sst2.toml").encoder.name == "swem"
    card = make_bundle(
        classifier("swem", ParserCard(name="none", fingerprint="0" * 64)), "swem-sst2"
    ).card
    assert (card.encoder.name, card.dimension, card.cost) == ("swem", 2 * DIM, "linear")
