"""Every encoder of the registry from torch to an answer: a new one is tested by being registered."""

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import heedful
from heedful.export.bundle import TrainedModel, export_bundle, make_bundle
from heedful.export.onnx import encoder_graph, explain_graph
from heedful.export.weight_sharing import MIN_BYTES, share_weights
from heedful.export.weight_storage import round_weights
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.runtime.bundles.card import ENCODER, EXPLAIN, TOKENIZER, Card, ParserCard
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.explain import gradients
from heedful.runtime.explain.graph import ExplainGraph
from heedful.text.batch import Sentence, collate
from heedful.text.parse import Parser
from tests.builders import BuiltParser
from tests.export.trained import MAX_TOKENS, WORDS, classifier
from tests.forests import forest
from tests.models.test_encoders import SMALLER

TEXT = " ".join(f"word{i}" for i in range(30))


WHOLE = ("ms-san", "ms-san-bert", "disan", "dsa", "lama")
"""The papers' encoders, which are exported with heads and compared with torch on every case of parity."""


Exported = Callable[[str], tuple[TrainedModel, Path]]


def trained(name: str, parser: BuiltParser) -> TrainedModel:
    """A classifier with random weights."""
    card = ParserCard(name=parser.name, fingerprint=parser.fingerprint)
    return classifier(name, card, **SMALLER.get(name, {}))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> Exported:
    """A classifier and its bundle, exported when it is first asked for."""

    @cache
    def export(name: str) -> tuple[TrainedModel, Path]:
        model, folder = trained(name, pipeline), tmp_path_factory.mktemp("models") / f"{name}-toy"
        export_bundle(model, folder)  # or ParityError
        return model, folder

    return export


def as_stored(module: nn.Module) -> Any:
    stored = copy.deepcopy(module).eval()
    round_weights(stored)
    return stored


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_it_is_exported_as_it_is_in_torch(
    name: str, exported: Exported, pipeline: BuiltParser
) -> None:
    """Through the runtime, sentence by sentence: torch's explanation, to 1e-5, and of the plain graph's vector.

    The graphs of a bundle; of an encoder of no paper of ours its graphs alone, which are quicker made.
    """
    if name in WHOLE:
        whole, folder = exported(name)
        model = as_stored(whole.model)
        encoder, explain = ((folder / file).read_bytes() for file in (ENCODER, EXPLAIN))
    else:
        model = as_stored(trained(name, pipeline).model)
        encoder = encoder_graph(model)
        explain = share_weights(explain_graph(model), encoder)
    assert not left_behind(explain)
    alpha = ALPHA if "alpha" in model.inputs else None
    fields: dict[str, Any] = {"tree": "heads" in model.inputs, "alpha": alpha}
    fields["files"] = {TOKENIZER: ""} if "pieces" in model.inputs else {}
    card = Card.model_construct(**fields)  # of which nothing else is read
    files = {ENCODER: encoder, EXPLAIN: explain}
    explainer = ExplainGraph(files, card)
    plain = OrtSession(encoder, "cpu", 1, explainer.shared)
    assert explainer.priors == model.encoder.priors
    rng = np.random.default_rng(0)
    for length in (1, 2, 9, MAX_TOKENS):
        batch = collate([sentence(rng, length, pieces="pieces" in model.inputs)])
        for off in (None, *explainer.priors):
            feeds = explainer.feeds(batch, {off: False} if off else {})
            found = explainer.run(feeds)
            with torch.inference_mode():
                known = model.explain(**{name: torch.as_tensor(v) for name, v in feeds.items()})
            np.testing.assert_allclose(found.embedding, known.sentence, atol=1e-5, rtol=0)
            np.testing.assert_allclose(found.states, known.states, atol=1e-5, rtol=0)
            for kind in ("pooling", "maps", "gate"):
                expected = getattr(known, kind)
                assert list(getattr(found, kind)) == list(expected)
                for name, weights in getattr(found, kind).items():
                    np.testing.assert_allclose(weights, expected[name], atol=1e-5, rtol=0)
                    np.testing.assert_array_equal(weights == 0, np.asarray(expected[name]) == 0)
            if off is None:
                vector = plain.run(encoder_feeds(card, batch))
                np.testing.assert_allclose(found.embedding, vector, atol=1e-5, rtol=0)


def test_an_encoder_without_products_is_exported_in_floats(pipeline: BuiltParser) -> None:
    assert make_bundle(trained("average", pipeline), "average", int8=True).card.int8 is None


ALPHA = 0.8


@pytest.mark.parametrize("name", ["ms-san", "disan", "lama"])  # three kinds of attention
def test_integrated_gradients_are_torchs(
    name: str, exported: Exported, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By differences of the exported graph what autograd gives of the score at 2,000 places of the path."""
    monkeypatch.setattr(gradients, "TOLERANCE", 0.02)
    whole, folder = exported(name)
    with heedful.load(folder, parser=pipeline.folder) as loaded:
        (evidence,) = loaded.explain(TEXT, gradients=True).answer["evidence"]["sentences"]
    given = evidence["gradients"]
    model, head = as_stored(whole.model), as_stored(whole.head or nn.Identity())
    (parse,) = Parser.load(pipeline.folder).parse([TEXT], whole.max_tokens, tree=True)
    one = collate([whole.vocab.sentence(parse.tokens, parse.heads)])
    words = model.embedding(torch.from_numpy(one.ids)).detach()
    size = 2000
    places = (torch.arange(size) + 0.5) / size
    path = (places[:, None, None] * words).requires_grad_()
    structure = {"heads": torch.from_numpy(one.heads), "alpha": torch.tensor(whole.alpha)}
    read = {key: structure[key] for key in model.encoder.inputs}
    many = {key: value.expand(size, -1) if value.ndim else value for key, value in read.items()}
    lengths = torch.from_numpy(one.lengths)
    with torch.no_grad():
        ends = [
            head(model.encoder(at, lengths, **read)).softmax(-1)[0] for at in (words, 0 * words)
        ]
    label = int(ends[0].argmax())
    vectors = model.encoder(path, lengths.expand(size), **many)
    head(vectors).softmax(-1)[:, label].sum().backward()
    assert path.grad is not None
    expected = (path.grad.mean(0) * words[0]).sum(-1)
    scores = [float(end[label]) for end in ends]
    assert (given["score"], given["baseline"]) == pytest.approx(scores, abs=1e-5)
    change = abs(given["score"] - given["baseline"])
    np.testing.assert_allclose(given["weights"], expected, atol=0.01 * change, rtol=0)
    error = abs(sum(given["weights"]) - given["score"] + given["baseline"]) / change
    assert error == pytest.approx(given["error"], rel=1e-4)
    assert error < 1e-3
    assert 0 < given["spread"] < 0.02


def sentence(rng: np.random.Generator, length: int, *, pieces: bool = False) -> Sentence:
    """A random sentence of words, or of two pieces a word."""
    if not pieces:
        return Sentence(rng.integers(1, WORDS, length), forest(rng, length))
    ids = rng.integers(1, WORDS, 2 * length + 2)
    return Sentence(ids, forest(rng, length), np.full(length, 2))


def left_behind(graph: bytes) -> list[str]:
    """Weights that explain.onnx holds itself."""
    initializers = onnx.load_from_string(graph).graph.initializer
    return [tensor.name for tensor in initializers if len(tensor.raw_data) >= MIN_BYTES]


def test_matrices_too_large_to_be_turned_round_by_the_exporter_are_shared() -> None:
    torch.manual_seed(0)
    encoder = build("disan", {"dim": 120})
    model = as_stored(SentenceEncoder(word_table(torch.randn(WORDS, 120), frozen=False), encoder))
    graph, explain = encoder_graph(model), explain_graph(model)
    shared = share_weights(explain, graph)
    assert not left_behind(shared)
    assert len(shared) < len(graph) / 4
