"""Every encoder of the registry from torch to an answer: a new one is tested by being registered."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from heedful.export.bundle import TrainedModel, export_bundle, make_bundle
from heedful.export.onnx import encoder_graph, explain_graph
from heedful.export.parity import TOLERANCE
from heedful.export.weight_sharing import MIN_BYTES, share_weights
from heedful.export.weight_storage import round_weights
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import SentenceEncoder, word_table
from heedful.runtime.answers import TokenizedText
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, TOKENIZER, Card, ParserCard
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.explain import gradients
from heedful.runtime.explain.explain import ExplainResult
from heedful.runtime.explain.graph import ExplainGraph
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.service import Options, running
from heedful.text.batch import Sentence, collate
from heedful.text.parse import ParseJob, Parser
from tests.asking import classify, embed, explain
from tests.builders import BuiltParser
from tests.export.trained import MAX_TOKENS, WORDS, classifier
from tests.forests import forest
from tests.models.test_encoders import SMALLER

TEXTS = ("word1", "word7 word2 unheard-of word2", " ".join(f"word{i}" for i in range(30)))


WHOLE = ("ms-san", "ms-san-bert", "disan", "dsa", "lama")
"""The papers' encoders, which are exported with heads and compared with torch on every case of parity."""


class Bundles:
    """A folder of models for each encoder, whose one bundle is exported when it is first asked for."""

    def __init__(self, folder: Path, parser: BuiltParser) -> None:
        self.folder, self.parser = folder, parser
        self._trained: dict[str, TrainedModel] = {}

    def export(self, name: str) -> TrainedModel:
        """What the bundle `name`-toy was made from."""
        if name not in self._trained:
            trained = self.trained(name)
            made = export_bundle(trained, self.bundle(name))
            assert made.parity.max_abs_error <= TOLERANCE
            self._trained[name] = trained
        return self._trained[name]

    def trained(self, name: str) -> TrainedModel:
        """A classifier with random weights."""
        card = ParserCard(name=self.parser.name, fingerprint=self.parser.fingerprint)
        return classifier(name, card, **SMALLER.get(name, {}))

    def bundle(self, name: str) -> Path:
        return self.folder / name / f"{name}-toy"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory, pipeline: BuiltParser) -> Bundles:
    return Bundles(tmp_path_factory.mktemp("models"), pipeline)


def as_stored(module: nn.Module) -> Any:
    stored = copy.deepcopy(module).eval()
    round_weights(stored)
    return stored


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_it_is_exported_as_it_is_in_torch(name: str, bundles: Bundles) -> None:
    """The graphs of a bundle; of an encoder that no test below serves its graphs alone, which are quicker made."""
    if name in WHOLE:
        model, folder = as_stored(bundles.export(name).model), bundles.bundle(name)
        encoder, explain = ((folder / file).read_bytes() for file in (ENCODER, EXPLAIN))
    else:
        model = as_stored(bundles.trained(name).model)
        encoder = encoder_graph(model)
        explain = share_weights(explain_graph(model), encoder)
    check_explanations(model, encoder, explain)


def test_no_session_warns_of_a_constant_that_is_left_over(
    bundles: Bundles, capfd: pytest.CaptureFixture[str]
) -> None:
    graph = explain_graph(bundles.export("disan").model.eval())  # the exporter leaves one in it
    capfd.readouterr()
    onnxruntime.InferenceSession(graph)
    warnings = capfd.readouterr().err.splitlines()
    # The factors of the words are an input with a default, which ONNX Runtime mentions.
    assert not [one for one in warnings if "Initializer scale appears in graph inputs" not in one]


@pytest.mark.parametrize("name", ["ms-san", "ms-san-bert", "disan"])  # trees, pieces, neither
def test_it_is_served_as_it_is_in_torch(name: str, bundles: Bundles) -> None:
    trained, model = bundles.export(name), f"{name}-toy"

    async def ask() -> list[np.ndarray]:
        options = Options(bundles.folder / name, parser=str(bundles.parser.folder), threads=1)
        async with running(options) as service:
            together = (await embed(service, TEXTS, model=model)).value
            alone = [(await embed(service, [text], model=model)).value[0] for text in TEXTS]
            return [together, np.stack(alone), (await classify(service, TEXTS, model=model)).value]

    vectors, alone, scores = asyncio.run(ask())
    np.testing.assert_allclose(alone, vectors, atol=1e-5)
    encoder, head = as_stored(trained.model), as_stored(trained.head or nn.Identity())
    jobs = [ParseJob(text, trained.max_tokens, True) for text in TEXTS]
    parses = Parser.load(bundles.parser.folder).parse(jobs)
    batch = collate([trained.vocab.sentence(parse.tokens, parse.heads) for parse in parses])
    feeds = batch.feeds(("ids", "lengths", *encoder.inputs), trained.alpha)
    with torch.inference_mode():
        expected = encoder(**{key: torch.as_tensor(value) for key, value in feeds.items()})
        logits = head(expected)
    sentences = expected[:, : encoder.dim - encoder.encoder.head_features]
    np.testing.assert_allclose(vectors, sentences, atol=1e-4)
    np.testing.assert_allclose(scores, logits.double().softmax(-1), atol=1e-4)


@pytest.mark.parametrize("name", ["ms-san", "disan"])  # DSA, LAMA and the Bi-LSTM stay float32
def test_in_int8_it_is_close_and_independent_of_the_batch(name: str, bundles: Bundles) -> None:
    made = make_bundle(bundles.export(name), name, int8=True)
    bundle = read(bundles.bundle(name))
    plain = OrtSession(bundle.files[ENCODER], "cpu", 2)
    int8 = OrtSession(made.files[ENCODER_INT8], "cpu", 2, files=made.files)
    rng = np.random.default_rng(1)
    chosen = [sentence(rng, length, pieces=False) for length in rng.integers(1, MAX_TOKENS, 40)]
    feeds = encoder_feeds(bundle.card, collate(chosen))
    exact, near = plain.run(feeds), int8.run(feeds)
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(near, axis=1)
    assert ((exact * near).sum(axis=1) / norms).min() >= 0.999
    for one, together in zip(chosen, near, strict=True):
        alone = int8.run(encoder_feeds(bundle.card, collate([one])))
        np.testing.assert_allclose(alone[0], together, atol=1e-5, rtol=0)


def test_an_encoder_without_products_is_exported_in_floats(bundles: Bundles) -> None:
    made = make_bundle(bundles.export("average"), "average", int8=True)
    assert made.card.int8 is None


ALPHA = 0.8


@pytest.mark.parametrize("name", ["ms-san", "disan", "lama"])  # three kinds of attention
def test_integrated_gradients_are_torchs(
    name: str, bundles: Bundles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By differences of the exported graph what autograd gives of the score at 2,000 places of the path."""
    monkeypatch.setattr(gradients, "TOLERANCE", 0.02)
    trained, asked = bundles.export(name), ExplainOptions(gradients=True)

    async def ask() -> tuple[list[TokenizedText], ExplainResult]:
        options = Options(bundles.folder / name, parser=str(bundles.parser.folder), threads=1)
        async with running(options) as service:
            return (await explain(service, [TEXTS[2]], asked, model=f"{name}-toy")).value

    (tokens,), found = asyncio.run(ask())
    given = found.fields["evidence"]["sentences"][0].gradients
    model, head = as_stored(trained.model), as_stored(trained.head or nn.Identity())
    one = collate([trained.vocab.sentence(tokens.parse.tokens, tokens.parse.heads)])
    words = model.embedding(torch.from_numpy(one.ids)).detach()
    size = 2000
    places = (torch.arange(size) + 0.5) / size
    path = (places[:, None, None] * words).requires_grad_()
    structure = {"heads": torch.from_numpy(one.heads), "alpha": torch.tensor(trained.alpha)}
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
    assert (given.score, given.baseline) == pytest.approx(scores, abs=1e-5)
    change = abs(given.score - given.baseline)
    np.testing.assert_allclose(given.weights, expected, atol=0.01 * change, rtol=0)
    error = abs(given.weights.sum() - given.score + given.baseline) / change
    assert error == pytest.approx(given.error)
    assert error < 1e-3
    assert 0 < given.spread < 0.02


@torch.inference_mode()
def check_explanations(model: SentenceEncoder, encoder: bytes, explain: bytes) -> None:
    """Through the runtime, sentence by sentence: torch's, to 1e-5; and of the plain graph's vector."""
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


def sentence(rng: np.random.Generator, length: int, *, pieces: bool) -> Sentence:
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
