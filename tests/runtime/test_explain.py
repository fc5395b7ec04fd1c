"""Explanations of the built models, whose graphs are simple enough to be repeated in numpy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from heedful.runtime.answers import TokenizedText
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import ENCODER, EXPLAIN
from heedful.runtime.engine.session import OrtSession
from heedful.runtime.engine.work import run_now
from heedful.runtime.errors import BadInput, BundleError
from heedful.runtime.explain.explain import DRAWS, ExplainResult, cosine_matrix
from heedful.runtime.explain.graph import MAX_TOKENS, ExplainGraph
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.model_registry import Task
from heedful.text.arrays import Doubles
from heedful.text.batch import Sentence, collate
from heedful.text.structure import without
from heedful.text.trees import build
from tests.asking import explain, present, whole
from tests.builders import ALPHA, BuiltParser, build_bundle, expected_embedding, word_table
from tests.runtime.conftest import Running
from tests.runtime.test_bundle import replace_file

KIDS = "Two kids at a ballgame wash their hands"
SST2, NLI = "tiny-sst2", "tiny-nli"


def ask(
    running: Running, *items: object, model: str | None = SST2, **asked: object
) -> tuple[list[TokenizedText], ExplainResult]:
    task: Task = "explain" if len(items) == 1 else "nli"
    options = ExplainOptions(**asked)  # type: ignore[arg-type]  # of tests
    result = running.ask(explain(running.service, items, options, task=task, model=model))  # type: ignore[arg-type]  # of tests
    return result.value


def softmax(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    powers = np.exp(x - x.max(-1, keepdims=True))
    weights: npt.NDArray[Any] = powers / powers.sum(-1, keepdims=True)
    return weights


def sentence_of(text: TokenizedText) -> Sentence:
    return Sentence(text.ids, text.parse.heads)


def left(text: TokenizedText, *gone: int) -> Sentence:
    """The sentence without these tokens."""
    removed = np.array(gone)
    return Sentence(np.delete(text.ids, removed), without(text.parse.heads, removed))


def cosine(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def scores(running: Running, *sentences: Sentence, alpha: float = ALPHA) -> Doubles:
    """The built head's scores for vectors computed in numpy."""
    vectors = [expected_embedding(sentence, alpha)[None] for sentence in sentences]
    model = running.service.registry.models[SST2 if len(sentences) == 1 else NLI]
    logits, _ = run_now(model.logits(*vectors))
    probabilities: Doubles = softmax(logits.astype(np.float64))[0]
    return probabilities


def test_weights_priors_and_alpha_are_those_of_the_graph_by_hand(running: Running) -> None:
    (text,), full = ask(running, KIDS, ablation=True)
    sentence, heads = sentence_of(text), text.parse.heads
    hidden = np.tanh(word_table()[text.ids] + ALPHA * word_table()[text.ids[heads]])
    (weights,) = full.sentences
    np.testing.assert_allclose(weights.maps["products"][0], softmax(hidden @ hidden.T), atol=1e-5)
    np.testing.assert_allclose(weights.pooling["sums"][0], softmax(hidden.sum(1)), atol=1e-5)
    opened = 1 / (1 + np.exp(-hidden.sum(1)))
    np.testing.assert_allclose(weights.gate["gate"][0], opened, atol=1e-5)
    assert list(weights.pooling) == ["sums", "mean"]
    assert (full.priors, full.alpha) == ({"dependency": True}, ALPHA)
    for options, alpha in (({"priors": {"dependency": False}}, 0.0), ({"alpha": 0.25}, 0.25)):
        _, explained = ask(running, KIDS, **options)
        vector = explained.sentences[0].embedding[0]
        np.testing.assert_allclose(vector, expected_embedding(sentence, alpha), atol=1e-5)
    (ablation,) = whole(full.ablation)
    assert ablation.prior == "dependency"
    expected = scores(running, sentence, alpha=0.0)
    np.testing.assert_allclose(present(ablation.scores), expected, atol=1e-5)
    vectors = expected_embedding(sentence), expected_embedding(sentence, 0.0)
    assert ablation.cosine == pytest.approx(cosine(*vectors), abs=1e-5)
    off = ask(running, KIDS, ablation=True, priors={"dependency": False})[1]
    assert off.ablation == []  # nothing is left to switch off


def test_no_cosine_is_above_one() -> None:
    states = np.random.default_rng(0).normal(size=(200, 300)).astype(np.float32)
    assert cosine_matrix(states, states).max() == 1
    assert cosine_matrix(states, -states).min() == -1


def test_faithfulness_takes_the_most_attended_tokens_away(running: Running) -> None:
    (text,), explained = ask(running, KIDS, faithfulness=True, k=2)
    weights = explained.sentences[0].pooling["sums"][0]
    (deletion,) = whole(explained.faithfulness)
    assert deletion.attended == np.argsort(-weights)[:2].tolist()
    before = scores(running, sentence_of(text))
    label = int(before.argmax())

    def drop(*gone: int) -> float:
        return float(before[label] - scores(running, left(text, *gone))[label])

    assert deletion.drop == pytest.approx(drop(*deletion.attended), abs=1e-5)
    rng = np.random.default_rng(0)
    drops = [drop(*rng.choice(len(text.ids), 2, replace=False)) for _ in range(DRAWS)]
    assert deletion.random == pytest.approx(np.mean(drops), abs=1e-5)
    assert deletion.spread == pytest.approx(np.std(drops), abs=1e-5)
    again = ask(running, KIDS, faithfulness=True, k=2)[1]
    assert again.faithfulness == explained.faithfulness


def test_a_pair_has_the_similarity_of_its_tokens_and_a_deletion_each(running: Running) -> None:
    texts, explained = ask(running, KIDS, "Kids.", model=NLI, faithfulness=True, k=2)
    first, second = (sentence.states[0] for sentence in explained.sentences)
    similarity = present(explained.similarity)
    assert similarity.shape == tuple(len(text.parse) for text in texts)
    assert similarity[1, 0] == pytest.approx(cosine(first[1], second[0]), abs=1e-5)
    assert [deletion is None for deletion in present(explained.faithfulness)] == [False, True]


def test_a_model_without_labels_is_measured_by_the_vectors_cosine(running: Running) -> None:
    options = {"faithfulness": True, "ablation": True, "evidence": True}
    _, explained = ask(running, KIDS, model=NLI, **options)
    (deletion,), (evidence,) = whole(explained.faithfulness), whole(explained.evidence)
    assert 0 < deletion.drop < 2
    assert present(explained.ablation)[0].scores is None
    assert explained.measured == "cosine"
    assert (evidence.weights > 0).all()
    assert evidence.margins is None


def test_a_given_tree_is_read_as_it_is_or_refused_or_cut(running: Running) -> None:
    tree = build(KIDS.split(), np.zeros(8, np.int64), ["dep"] * 8, [True] * 8)
    (text,), explained = ask(running, tree)
    np.testing.assert_array_equal(text.parse.heads, 0)
    assert text.parse.text == KIDS
    expected = expected_embedding(Sentence(text.ids, tree.heads))
    np.testing.assert_allclose(explained.sentences[0].embedding[0], expected, atol=1e-5)
    plain = running.embed([tree, KIDS], SST2).value
    np.testing.assert_allclose(plain[0], expected, atol=1e-5)
    assert np.abs(plain[0] - plain[1]).max() > 1e-3
    long, short = (build(["dog"] * n, np.arange(n), ["ROOT"] * n, [True] * n) for n in (20, 16))
    with pytest.raises(BadInput, match="is longer than tiny-sst2 reads"):
        running.embed([long], SST2)
    cut = running.embed([long], SST2, truncate=True)
    assert cut.truncated == 1
    np.testing.assert_array_equal(cut.value, running.embed([short], SST2).value)


@pytest.fixture
def bundle(tmp_path: Path, pipeline: BuiltParser) -> Bundle:
    build_bundle(tmp_path, pipeline, explain=True)
    return read(tmp_path / SST2)


def test_the_sentence_is_capped_by_tokens_and_by_maps(bundle: Bundle) -> None:
    graph = ExplainGraph(bundle.files, bundle.card)
    assert graph.max_tokens == MAX_TOKENS
    graph.names = {**graph.names, "maps": ["one"] * 64}
    assert graph.max_tokens == 64  # 64 maps of 64 x 64


def test_the_word_table_is_in_memory_once(bundle: Bundle) -> None:
    """Both sessions read it where the bundle's file was read to."""
    content = np.frombuffer(bundle.files[ENCODER], np.uint8)
    graph = ExplainGraph(bundle.files, bundle.card)
    assert set(graph.shared) == {"table"}
    offset = graph.shared["table"].data_ptr() - content.ctypes.data
    assert 0 < offset < len(content)
    assert len(bundle.files[EXPLAIN]) < len(bundle.files[ENCODER]) + 3000
    # The encoder uses what it is given: another table gives other vectors.
    feeds = graph.feeds(collate([Sentence(np.array([2, 3, 4]), np.array([0, 0, 1]))]))
    del feeds["dependency"]
    zeros = ExplainGraph({**bundle.files, ENCODER: bytes(len(content))}, bundle.card).shared
    plain, shared, zero = (
        OrtSession(bundle.files[ENCODER], "cpu", 1, *tables).run(feeds)
        for tables in ((), (graph.shared,), (zeros,))
    )
    np.testing.assert_array_equal(plain, shared)
    assert (zero == 0).all()


def changed(content: bytes, **metadata: str) -> bytes:
    """The graph with other metadata; of weights "beyond" the first would begin after the end of encoder.onnx."""
    model = onnx.load_from_string(content)
    known = {entry.key: entry.value for entry in model.metadata_props}
    if metadata.get("weights") == "beyond":
        weights = json.loads(known["weights"])
        metadata["weights"] = json.dumps({**weights, min(weights): 10**9})
    onnx.helper.set_model_props(model, {**known, **metadata})
    serialised: bytes = model.SerializeToString()
    return serialised


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda _: b"no graph", r"\[ONNXRuntimeError\] : 7 : INVALID_PROTOBUF"),
        (lambda files: files[ENCODER], "its metadata: weights: Field required"),
        (lambda f: changed(f[EXPLAIN], shared="[]"), "its metadata: shared: Input should be"),
        (lambda f: changed(f[EXPLAIN], shared='{"a": "b"}'), "shared names no weights b"),
        (lambda f: changed(f[EXPLAIN], weights='{"b": 0}'), "do not agree on b, table"),
        (lambda f: changed(f[EXPLAIN], gate='["a", "b"]'), "gate names 2 of 1"),
        (lambda f: changed(f[EXPLAIN], weights="{}", shared="{}"), "do not agree on table"),
        (lambda f: changed(f[EXPLAIN], weights="beyond"), "lies outside encoder.onnx"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused_with_the_reason(
    bundle: Bundle, make: Callable[[Any], bytes], reason: str
) -> None:
    assert bundle.folder
    replace_file(bundle.folder, EXPLAIN, make(bundle.files))
    with pytest.raises(BundleError, match=rf"explain\.onnx: does not open, or .*{reason}"):
        read(bundle.folder)
