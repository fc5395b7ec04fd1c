"""What git holds of a model over MiniLM, and the bundle that it becomes with MiniLM's package."""

from pathlib import Path

import pytest

from heedful.cli.local_model import open_folder
from heedful.export.bundle import export_bundle
from heedful.export.run import read
from heedful.training import tasks
from tests.datasets import DATA, needs_data

ADAPTERS = Path("adapters")
PAIRS = 200


@pytest.mark.slow
@needs_data
def test_an_adapter_becomes_a_bundle_that_answers_as_its_card_says(tmp_path: Path) -> None:
    """On the first pairs of SNLI's dev split, where the score of all is .86 and its error here .025."""
    out = tmp_path / "ms-san-minilm-nli"
    card = export_bundle(read(ADAPTERS / "ms-san-minilm-nli-genres"), out, "small")
    (claimed,) = (one.value for one in card.scores if one.split == "dev")
    task = tasks.get("nli")
    examples = task.dev.read(DATA)[:PAIRS]
    with open_folder(out, "bundles/parser") as model:
        found = model.predict(examples, task)
    right = [one.label == answer for one, answer in zip(examples, found, strict=True)]
    assert abs(sum(right) / PAIRS - claimed) < 0.07
