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
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, EXPLAIN
from heedful.runtime.bundles.card import EXPLAIN as FILE
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
from tests.asking import embed, explain, present, whole
from tests.builders import ALPHA, BuiltParser, build_bundle, expected_embedding, word_table
from tests.runtime.conftest import Running
from tests.runtime.test_bundle import replace_file

KIDS = "Two kids at a ballgame wash their hands"


def ask(
    running: Running, *items: object, model: str | None = "tiny-sst2", **asked: object
) -> tuple[list[TokenizedText], ExplainResult]:
    task: Task = "explain" if len(items) == 1 else "nli"
    result = running.ask(
        explain(running.service, items, ExplainOptions(**asked), task=task, model=model)  # type: ignore[arg-type]  # of tests
    )
    return result.value


def softmax(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    powers = np.exp(x - x.max(-1, keepdims=True))
    weights: npt.NDArray[Any] = powers / powers.sum(-1, keepdims=True)
    return weights


def scores(running: Running, *sentences: Sentence, alpha: float = ALPHA) -> Doubles:
    """What the built head gives for vectors that numpy made."""
    vectors = [expected_embedding(sentence, alpha)[None] for sentence in sentences]
    model = running.service.registry.models["tiny-sst2" if len(sentences) == 1 else "tiny-nli"]
    logits, _ = run_now(model.logits(*vectors))
    found: Doubles = softmax(logits.astype(np.float64))[0]
    return found


def test_weights_are_those_of_the_graph_by_hand(running: Running) -> None:
    (text,), explained = ask(running, KIDS)
    heads = text.parse.heads
    hidden = np.tanh(word_table()[text.ids] + ALPHA * word_table()[text.ids[heads]])
    (one,) = explained.sentences
    np.testing.assert_allclose(one.maps["products"][0], softmax(hidden @ hidden.T), atol=1e-5)
    np.testing.assert_allclose(one.pooling["sums"][0], softmax(hidden.sum(1)), atol=1e-5)
    np.testing.assert_allclose(one.gate["gate"][0], 1 / (1 + np.exp(-hidden.sum(1))), atol=1e-5)
    assert list(one.pooling) == ["sums", "mean"]
    assert explained.priors == {"dependency": True}
    assert explained.alpha == ALPHA


def test_no_cosine_is_above_one() -> None:
    states = np.random.default_rng(0).normal(size=(200, 300)).astype(np.float32)
    assert cosine_matrix(states, states).max() == 1
    assert cosine_matrix(states, -states).min() == -1


def test_priors_and_alpha_reach_the_graph(running: Running) -> None:
    (text,), full = ask(running, KIDS, ablation=True)
    sentence = Sentence(text.ids, text.parse.heads)
    for asked, alpha in (({"priors": {"dependency": False}}, 0.0), ({"alpha": 0.25}, 0.25)):
        _, explained = ask(running, KIDS, **asked)
        vector = explained.sentences[0].embedding[0]
        np.testing.assert_allclose(vector, expected_embedding(sentence, alpha), atol=1e-5)
    (ablation,) = whole(full.ablation)
    assert ablation.prior == "dependency"
    np.testing.assert_allclose(
        present(ablation.scores), scores(running, sentence, alpha=0.0), atol=1e-5
    )
    first, second = expected_embedding(sentence), expected_embedding(sentence, 0.0)
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert ablation.cosine == pytest.approx(cosine, abs=1e-5)
    off = ask(running, KIDS, ablation=True, priors={"dependency": False})[1]
    assert off.ablation == []  # nothing is left to switch off


def test_faithfulness_takes_the_most_attended_tokens_away(running: Running) -> None:
    (text,), explained = ask(running, KIDS, faithfulness=True, k=2)
    sentence = Sentence(text.ids, text.parse.heads)
    weights = explained.sentences[0].pooling["sums"][0]
    (deletion,) = whole(explained.faithfulness)
    assert deletion.attended == np.argsort(-weights)[:2].tolist()
    before = scores(running, sentence)
    label = int(before.argmax())

    def drop(gone: npt.NDArray[np.integer]) -> float:
        rest = Sentence(np.delete(text.ids, gone), without(text.parse.heads, gone))
        return float(before[label] - scores(running, rest)[label])

    assert deletion.drop == pytest.approx(drop(np.array(deletion.attended)), abs=1e-5)
    rng = np.random.default_rng(0)
    drops = [drop(rng.choice(len(sentence), 2, replace=False)) for _ in range(DRAWS)]
    assert deletion.random == pytest.approx(np.mean(drops), abs=1e-5)
    assert deletion.spread == pytest.approx(np.std(drops), abs=1e-5)
    again = ask(running, KIDS, faithfulness=True, k=2)[1]
    assert again.faithfulness == explained.faithfulness


def test_a_pair_has_the_similarity_of_its_tokens_and_a_deletion_each(running: Running) -> None:
    texts, explained = ask(running, KIDS, "Kids.", model="tiny-nli", faithfulness=True, k=2)
    first, second = (one.states[0] for one in explained.sentences)
    similarity = present(explained.similarity)
    assert similarity.shape == tuple(len(text.parse) for text in texts)
    cosine = first[1] @ second[0] / np.linalg.norm(first[1]) / np.linalg.norm(second[0])
    assert similarity[1, 0] == pytest.approx(cosine, abs=1e-5)
    assert [deletion is None for deletion in present(explained.faithfulness)] == [False, True]


def test_a_model_without_labels_is_measured_by_the_vectors_cosine(running: Running) -> None:
    _, explained = ask(running, KIDS, model="tiny-nli", faithfulness=True, ablation=True)
    (deletion,) = whole(explained.faithfulness)
    assert 0 < deletion.drop < 2
    assert present(explained.ablation)[0].scores is None


def test_a_given_tree_is_read_as_it_is(running: Running) -> None:
    tokens = KIDS.split()
    tree = build(tokens, np.zeros(8, np.int64), ["dep"] * 8, [True] * 8)
    (text,), explained = ask(running, tree)
    np.testing.assert_array_equal(text.parse.heads, 0)
    assert text.parse.text == KIDS
    expected = expected_embedding(Sentence(text.ids, tree.heads))
    np.testing.assert_allclose(explained.sentences[0].embedding[0], expected, atol=1e-5)
    plain = running.ask(embed(running.service, [tree, KIDS], model="tiny-sst2"))
    np.testing.assert_allclose(plain.value[0], expected, atol=1e-5)
    assert np.abs(plain.value[0] - plain.value[1]).max() > 1e-3


def test_a_given_tree_that_is_too_long_is_refused_or_cut(running: Running) -> None:
    tree = build(["dog"] * 20, np.arange(20), ["ROOT"] * 20, [True] * 20)
    with pytest.raises(BadInput, match="is longer than tiny-sst2 reads"):
        running.ask(embed(running.service, [tree], model="tiny-sst2"))
    cut = running.ask(embed(running.service, [tree], model="tiny-sst2", truncate=True))
    assert cut.truncated == 1
    short = build(["dog"] * 16, np.arange(16), ["ROOT"] * 16, [True] * 16)
    same = running.ask(embed(running.service, [short], model="tiny-sst2"))
    np.testing.assert_array_equal(cut.value, same.value)


def test_the_sentence_is_capped_by_tokens_and_by_maps(
    tmp_path: Path, built_parser: BuiltParser
) -> None:
    build_bundle(tmp_path, built_parser, explain=True)
    bundle = read(tmp_path / "tiny-sst2")
    explain_graph = ExplainGraph(bundle.files, bundle.card)
    assert explain_graph.max_tokens == MAX_TOKENS
    explain_graph.names = {**explain_graph.names, "maps": ["one"] * 64}
    assert explain_graph.max_tokens == 64  # 64 maps of 64 x 64


def test_the_word_table_is_in_memory_once(tmp_path: Path, built_parser: BuiltParser) -> None:
    """Both sessions read it where the bundle's file was read to."""
    build_bundle(tmp_path, built_parser, explain=True)
    bundle = read(tmp_path / "tiny-sst2")
    content = np.frombuffer(bundle.files[ENCODER], np.uint8)
    explain_graph = ExplainGraph(bundle.files, bundle.card)
    assert set(explain_graph.shared) == {"table"}
    for value in explain_graph.shared.values():
        offset = value.data_ptr() - content.ctypes.data
        assert 0 < offset < len(content)
    assert len(bundle.files[EXPLAIN]) < len(bundle.files[ENCODER]) + 3000
    # The encoder uses what it is given: another table gives other vectors.
    feeds = explain_graph.feeds(collate([Sentence(np.array([2, 3, 4]), np.array([0, 0, 1]))]))
    del feeds["dependency"]
    own = OrtSession(bundle.files[ENCODER], "cpu", 1).run(feeds)
    shared = OrtSession(bundle.files[ENCODER], "cpu", 1, explain_graph.shared).run(feeds)
    np.testing.assert_array_equal(own, shared)
    other = ExplainGraph({**bundle.files, ENCODER: bytes(len(content))}, bundle.card).shared
    assert (OrtSession(bundle.files[ENCODER], "cpu", 1, other).run(feeds) == 0).all()


def changed_explain(content: bytes, **metadata: str) -> bytes:
    model = onnx.load_from_string(content)
    known = {entry.key: entry.value for entry in model.metadata_props}
    onnx.helper.set_model_props(model, {**known, **metadata})
    changed: bytes = model.SerializeToString()
    return changed


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda _: b"no graph", r"\[ONNXRuntimeError\] : 7 : INVALID_PROTOBUF"),
        (lambda files: files[ENCODER], "its metadata: weights: Field required"),
        (lambda f: changed_explain(f[FILE], shared="[]"), "its metadata: shared: Input should be"),
        (lambda f: changed_explain(f[FILE], shared='{"a": "b"}'), "shared names no weights b"),
        (lambda f: changed_explain(f[FILE], weights='{"b": 0}'), "do not agree on b, table"),
        (lambda f: changed_explain(f[FILE], gate='["a", "b"]'), "gate names 2 of 1"),
        (lambda f: changed_explain(f[FILE], weights="{}", shared="{}"), "do not agree on table"),
        (lambda f: beyond(f[FILE]), "lies outside encoder.onnx"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused_with_the_reason(
    tmp_path: Path,
    built_parser: BuiltParser,
    make: Callable[[dict[str, bytes]], bytes],
    reason: str,
) -> None:
    build_bundle(tmp_path, built_parser, explain=True)
    folder = tmp_path / "tiny-sst2"
    replace_file(
        folder, FILE, make({name: (folder / name).read_bytes() for name in (ENCODER, FILE)})
    )
    with pytest.raises(BundleError, match=rf"explain\.onnx: does not open, or .*{reason}"):
        read(folder)


def beyond(content: bytes) -> bytes:
    """The same graph, whose first weight would begin after the end of encoder.onnx."""
    metadata = {entry.key: entry.value for entry in onnx.load_from_string(content).metadata_props}
    weights = json.loads(metadata["weights"])
    return changed_explain(content, weights=json.dumps({**weights, min(weights): 10**9}))
