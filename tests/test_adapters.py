"""What git holds of a model over MiniLM is, with MiniLM's package, the model of its card."""

from pathlib import Path

from heedful.export.dev_split import DevSplit, torch_head, torch_vectors
from heedful.export.run import read
from heedful.text.parse import Parser
from heedful.training import tasks
from tests.datasets import DATA, needs_data
from tools.unpack import unpack

tasks.add("")
ADAPTERS = Path("adapters")
PAIRS = 200


@needs_data
def test_an_adapter_answers_as_its_card_says(tmp_path: Path) -> None:
    """On the first pairs of SNLI's dev split, where the score of all is .86 and its error here .025.

    tests/export/test_run.py exports a small one of this shape.
    """
    trained = read(unpack(ADAPTERS / "ms-san-minilm-nli-genres", tmp_path))
    (claimed,) = (one.value for one in trained.scores if one.split == "dev")
    task = tasks.get("nli")
    examples = task.dev.read(DATA)[:PAIRS]
    dev = DevSplit.read(task, examples, Parser.load("bundles/parser"), trained)
    vectors = torch_vectors(trained, dev.sentences)
    score, *_ = dev.scores(trained.labels, vectors, torch_head(trained))
    assert abs(score.value - claimed) < 0.07
