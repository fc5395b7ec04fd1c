"""Every encoder of the registry from torch to an answer: a new one is tested by being registered."""

import asyncio
import copy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from export.bundle import Trained, export_bundle
from export.quantize import round_weights
from models.registry import ENCODERS
from runtime.card import ParserCard
from runtime.service import Options, Service
from tests.builders import build_parser
from tests.export.trained import classifier
from tests.models.test_encoders import SMALLER
from text.batch import collate
from text.parse import ParseJob, Parser

TEXTS = ("word1", "word7 word2 unheard-of word2", " ".join(f"word{i}" for i in range(30)))


class Served:
    """A running service over a bundle of each encoder that could be exported."""

    def __init__(self, folder: Path) -> None:
        parser = build_parser(folder / "parser")
        card = ParserCard(name=parser.name, fingerprint=parser.fingerprint)
        self.trained: dict[str, Trained] = {}
        self.failed: dict[str, Exception] = {}
        for name in ENCODERS:
            self.trained[name] = classifier(name, card, **SMALLER.get(name, {}))
            try:
                made = export_bundle(self.trained[name], folder / f"{name}-toy")
                assert made.parity.max_abs_error <= 1e-4
            except Exception as error:  # noqa: BLE001  # its own test raises it
                self.failed[name] = error
        self.parser = Parser.load(parser.folder)
        self.service = Service(Options(folder, parse_workers=1, threads=1))
        self.runner = asyncio.Runner()
        self.runner.run(self.service.start())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(tmp_path_factory.mktemp("models"))
    with running.runner:
        yield running
        running.runner.run(running.service.stop(grace=5))


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_exported_and_served_as_it_is_in_torch(name: str, served: Served) -> None:
    if name in served.failed:
        raise served.failed[name]
    ask, service, bundle = served.runner.run, served.service, f"{name}-toy"
    vectors = ask(service.embed(TEXTS, model=bundle)).value
    scores = ask(service.classify(TEXTS, model=bundle)).value

    made = served.trained[name]
    model, head = copy.deepcopy(made.model).eval(), copy.deepcopy(made.head)
    assert head is not None
    round_weights(model)
    round_weights(head.eval())
    parses = served.parser.parse([ParseJob(text, made.max_tokens, True) for text in TEXTS])
    batch = collate([made.vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    pieces = None if batch.pieces is None else torch.from_numpy(batch.pieces)
    with torch.inference_mode():
        ids, lengths, heads = map(torch.from_numpy, (batch.ids, batch.lengths, batch.heads))
        expected = model(ids, lengths, heads, torch.tensor(made.alpha), pieces)
        logits = head(expected)
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    np.testing.assert_allclose(scores, logits.double().softmax(-1), atol=1e-4)
    alone = np.concatenate([ask(service.embed([text], model=bundle)).value for text in TEXTS])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
