"""`python -m tools trust`, for real, on a bundle that nobody trained: its figures are in its card and on the page."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.cli.errors import CommandError
from heedful.export.bundle import export_bundle
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ParserCard
from heedful.text.structure import check_heads
from heedful.training.tasks import get
from tests.builders import BuiltParser
from tests.export.trained import trained
from tools import trust
from tools.control_scores import random_tree, right_branching
from tools.local_model import open_folder
from tools.scoring import measure
from tools.trust_page import BEGIN, END, write_page

CONTROLS = (
    *("uniform attention", "permuted attention", "random attention"),
    *("random trees", "right-branching trees"),
    *("without direction", "without word", "without dependency"),
)


def test_a_bundle_is_measured_and_its_card_says_so(
    pipeline: BuiltParser, stsb: Path, tmp_path: Path
) -> None:
    parser = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    folder = tmp_path / "ms-san-toy"
    export_bundle(replace(trained("relatedness"), task="stsb", parser=parser), folder)
    name = str(pipeline.folder)
    before = read(folder).card
    out = tmp_path / "measured" / "ms-san-toy"
    card = trust.measure(folder, out, name, data=stsb, rows=30, curves=5, gradients=6)
    found = card.trust
    assert found is not None
    assert tuple(one.name for one in found.controls) == CONTROLS
    assert (found.dataset, found.metric, found.rows) == ("stsb", "pearson", 30)
    with open_folder(folder, name) as model:  # the unchanged model's score is the plain one
        plain, *_ = measure(get("stsb"), "dev", stsb, model)
    assert found.value == pytest.approx(plain.value, abs=1e-5)
    assert len({round(one.value, 6) for one in found.controls} | {found.value}) > 5
    assert 0 < found.sentences <= 5
    assert all(0 <= one <= 1 for one in (found.attention, found.evidence, found.random, found.wins))
    gradients = found.gradients
    assert gradients is not None
    assert gradients.sentences <= 6
    assert 0 <= gradients.median <= gradients.p95
    assert read(out).card == card
    assert read(folder).card == before

    page = tmp_path / "trust.md"
    page.write_text(f"before\n{BEGIN}\nSTALE\n{END}\nafter\n")
    write_page(page, [card, before.model_copy(update={"trust": None, "name": "other"})])
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "STALE" not in text
    assert "- `other`: not measured." in text
    for control in found.controls:
        assert f"| {control.name} | stsb, 30 rows | pearson | {control.value:.3f} |" in text
    assert f"| {gradients.median:.1%} | {gradients.p95:.1%} | {gradients.complete:.0%} |" in text
    page.write_text("no marks")
    with pytest.raises(CommandError, match="does not hold the lines"):
        write_page(page, [card])


def test_trees_are_trees() -> None:
    rng = np.random.default_rng(0)
    for length in (1, 2, 7):
        heads = random_tree(rng, length)
        check_heads(heads)
        assert (heads == np.arange(length)).sum() == 1
    assert right_branching(4).tolist() == [0, 0, 1, 2]
