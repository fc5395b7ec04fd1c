"""Explanations of the built models, whose graphs are simple enough to be repeated in numpy, one sentence at a time."""

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import softmax
from scipy.stats import spearmanr

from heedful.runtime.answers import TokenizedText
from heedful.runtime.bundles.bundle import read
from heedful.runtime.engine.work import run_now
from heedful.runtime.errors import BadInput
from heedful.runtime.explain import gradients
from heedful.runtime.explain.correlation import rank_correlation
from heedful.runtime.explain.curves import masked
from heedful.runtime.explain.explain import DRAWS, ExplainResult
from heedful.runtime.explain.graph import MAX_TOKENS, ExplainGraph
from heedful.runtime.explain.run import ExplainOptions, log_odds
from heedful.runtime.model_registry import Task
from heedful.text.arrays import Doubles
from heedful.text.batch import PAD, Sentence
from heedful.text.structure import without
from heedful.text.trees import build
from heedful.text.vocab import Vocab
from tests.asking import explain, present
from tests.builders import (
    ALPHA,
    BuiltParser,
    build_bundle,
    build_pieces,
    expected_embedding,
    word_table,
)
from tests.runtime.conftest import Running

KIDS = "Two kids at a ballgame wash their hands"
SST2, NLI, RELATED = "tiny-sst2", "tiny-nli", "tiny-related"


def ask(
    running: Running, *items: object, model: str | None = SST2, **asked: object
) -> tuple[list[TokenizedText], ExplainResult]:
    pairs: Task = "relatedness" if model == RELATED else "nli"
    task: Task = "explain" if len(items) == 1 else pairs
    options = ExplainOptions(**asked)  # type: ignore[arg-type]  # of tests
    result = running.ask(explain(running.service, items, options, task=task, model=model))  # type: ignore[arg-type]  # of tests
    return result.value.texts, result.value


def sides(explained: ExplainResult, part: str) -> list[Any]:
    """A part of the answer, for each sentence."""
    sentences: list[Any] = explained.fields[part]["sentences"]
    return sentences


def sentence_of(text: TokenizedText) -> Sentence:
    return Sentence(text.ids, text.parse.heads)


def left(text: TokenizedText, *gone: int) -> Sentence:
    """The sentence without these tokens."""
    remains = ~np.isin(np.arange(len(text.ids)), gone)
    return Sentence(text.ids[remains], without(text.parse.heads, remains))


def cosine(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def scores(running: Running, *sentences: Sentence, alpha: float = ALPHA) -> Doubles:
    """The built head's scores for vectors computed in numpy."""
    vectors = [expected_embedding(sentence, alpha)[None] for sentence in sentences]
    model = running.service.registry.models[SST2 if len(sentences) == 1 else NLI]
    logits = run_now(model.logits(*vectors))
    probabilities: Doubles = softmax(logits.astype(np.float64), axis=-1)[0]
    return probabilities


def test_weights_priors_and_alpha_are_those_of_the_graph_by_hand(running: Running) -> None:
    (text,), full = ask(running, KIDS, ablation=True)
    sentence, heads = sentence_of(text), text.parse.heads
    hidden = np.tanh(word_table()[text.ids] + ALPHA * word_table()[text.ids[heads]])
    (weights,) = full.sentences
    products = softmax(hidden @ hidden.T, axis=-1)
    np.testing.assert_allclose(weights.maps["products"][0], products, atol=1e-5)
    np.testing.assert_allclose(weights.pooling["sums"][0], softmax(hidden.sum(1)), atol=1e-5)
    opened = 1 / (1 + np.exp(-hidden.sum(1)))
    np.testing.assert_allclose(weights.gate["gate"][0], opened, atol=1e-5)
    assert list(weights.pooling) == ["sums", "mean"]
    assert full.priors == {"dependency": True, "alpha": ALPHA}
    (ablation,) = full.fields["ablation"]
    assert ablation["prior"] == "dependency"
    expected = scores(running, sentence, alpha=0.0)
    found = list(ablation["prediction"]["scores"].values())
    np.testing.assert_allclose(found, expected, atol=1e-5)
    change = list(ablation["change"].values())
    np.testing.assert_allclose(change, expected - scores(running, sentence), atol=1e-5)
    vectors = expected_embedding(sentence), expected_embedding(sentence, 0.0)
    assert ablation["cosine"] == pytest.approx(cosine(*vectors), abs=1e-5)
    off = ask(running, KIDS, ablation=True, priors={"dependency": False})[1]
    assert off.fields["ablation"] == []  # nothing is left to switch off


def test_faithfulness_takes_the_most_attended_tokens_away(running: Running) -> None:
    (text,), explained = ask(running, KIDS, faithfulness=True, k=2)
    weights = explained.sentences[0].pooling["sums"][0]
    (deletion,) = sides(explained, "faithfulness")
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
    assert again.fields == explained.fields


def test_a_pair_has_the_similarity_of_its_tokens_and_changes_of_one_sentence(
    running: Running,
) -> None:
    options = {"evidence": True, "faithfulness": True, "k": 2}
    texts, explained = ask(running, KIDS, "Kids.", model=NLI, **options)
    first, second = (sentence.states[0] for sentence in explained.sentences)
    similarity = explained.fields["similarity"]
    assert similarity.shape == tuple(len(text.parse) for text in texts)
    assert similarity[1, 0] == pytest.approx(cosine(first[1], second[0]), abs=1e-5)
    assert [deletion is None for deletion in sides(explained, "faithfulness")] == [False, True]
    sentences = [sentence_of(text) for text in texts]
    before = scores(running, *sentences)
    after = scores(running, sentences[0], left(texts[1], 1))
    label = int(before.argmax())
    weights = sides(explained, "evidence")[1].weights
    assert weights[1] == pytest.approx(before[label] - after[label], abs=1e-5)
    assert sides(ask(running, "Kids", evidence=True)[1], "evidence") == [None]


def test_a_model_without_labels_is_measured_by_the_vectors_cosine_or_its_score(
    running: Running,
) -> None:
    options = {"faithfulness": True, "ablation": True, "gradients": True}
    _, explained = ask(running, KIDS, model=NLI, **options)
    (deletion,), (evidence,) = sides(explained, "faithfulness"), sides(explained, "evidence")
    assert 0 < deletion.drop < 2
    assert explained.fields["ablation"][0].keys() == {"prior", "cosine"}
    assert explained.fields["evidence"]["of"] == "cosine"
    assert (evidence.weights > 0).all()
    assert evidence.margins is None
    path = evidence.gradients  # of zero vectors the mean is zero, whose cosine is 0
    assert (path.score, path.baseline) == pytest.approx((1, 0), abs=1e-6)
    (text, _), explained = ask(running, KIDS, "Kids.", model=RELATED, evidence=True)
    _, shorter = ask(running, text.parse.without([0]), "Kids.", model=RELATED)
    assert explained.fields["evidence"]["of"] == "relatedness"
    change = explained.fields["relatedness"] - shorter.fields["relatedness"]
    assert sides(explained, "evidence")[0].weights[0] == pytest.approx(change, abs=1e-5)


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


@pytest.mark.parametrize(
    ("options", "alpha"),
    [({}, ALPHA), ({"priors": {"dependency": False}}, 0.0), ({"alpha": 0.25}, 0.25)],
    ids=["as served", "without a prior", "another alpha"],
)
def test_evidence_is_the_change_without_each_token(
    running: Running, options: dict[str, Any], alpha: float
) -> None:
    (text,), explained = ask(running, KIDS, evidence=True, **options)
    sentence = sentence_of(text)
    vector = explained.sentences[0].embedding[0]
    np.testing.assert_allclose(vector, expected_embedding(sentence, alpha), atol=1e-5)
    before = scores(running, sentence, alpha=alpha)
    label = int(before.argmax())
    assert explained.fields["evidence"]["of"] == ("negative", "positive")[label]
    (evidence,) = sides(explained, "evidence")
    assert evidence.margins is not None
    assert evidence.gradients is None
    for i, weight in enumerate(evidence.weights):
        after = scores(running, left(text, i), alpha=alpha)
        assert weight == pytest.approx(before[label] - after[label], abs=1e-5)
        odds = [np.log(p[label] / (1 - p[label])) for p in (before, after)]
        assert evidence.margins[i] == pytest.approx(odds[0] - odds[1], abs=1e-4)
    assert evidence.weights.min() < 0 < evidence.weights.max()


@pytest.mark.parametrize("model", [SST2, NLI])
def test_a_token_that_leaves_the_vector_as_it_is_has_no_evidence(
    running: Running, model: str
) -> None:
    """A repeated word has the same mean, but for rounding, for any number of repetitions."""
    options = {"evidence": True, "faithfulness": True, "curves": True}
    for length in range(2, 12):
        _, explained = ask(running, " ".join(["kids"] * length), model=model, **options)
        (evidence,), (curves,) = sides(explained, "evidence"), sides(explained, "curves")
        (deletion,) = sides(explained, "faithfulness")
        assert not evidence.weights.any()
        assert evidence.margins is None or not evidence.margins.any()
        assert {correlation.value for correlation in evidence.correlations} == {None}
        assert (deletion.drop, deletion.random, deletion.spread) == (0, 0, 0)
        assert {curve.normalised_comprehensiveness for curve in curves.deleted.orders} == {None}


def test_integrated_gradients_lead_from_zero_vectors_to_the_score(running: Running) -> None:
    texts, explained = ask(running, KIDS, "A dog.", model=NLI, gradients=True)
    sentences = [sentence_of(text) for text in texts]
    before = scores(running, *sentences)
    label = int(before.argmax())
    for side, evidence in enumerate(sides(explained, "evidence")):
        path = evidence.gradients
        vectors = [expected_embedding(sentence, ALPHA)[None] for sentence in sentences]
        vectors[side] *= 0  # tanh of nothing
        logits = run_now(running.service.registry.models[NLI].logits(*vectors))
        assert path.score == pytest.approx(before[label], abs=1e-5)
        baseline = softmax(logits.astype(float), axis=-1)[0, label]
        assert path.baseline == pytest.approx(baseline, abs=1e-5)
        change = path.score - path.baseline
        assert path.error <= 1e-4
        assert 0 <= path.spread <= gradients.TOLERANCE
        assert abs(path.weights.sum() - change) / abs(change) == pytest.approx(path.error)
        assert len(path.correlations) == len(evidence.correlations)


def test_correlations_name_every_map_pooling_and_gate(running: Running) -> None:
    _, explained = ask(running, KIDS, evidence=True)
    (evidence,) = sides(explained, "evidence")
    values = {(part.kind, part.name): part.value for part in evidence.correlations}
    names = [("maps", "products"), ("pooling", "sums"), ("pooling", "mean"), ("gate", "gate")]
    assert list(values) == names
    pooling = explained.sentences[0].pooling["sums"][0]
    expected = spearmanr(pooling, np.abs(evidence.weights)).statistic
    assert values["pooling", "sums"] == pytest.approx(expected)
    assert values["pooling", "mean"] is None  # one weight for all tokens has no order
    ties = np.array([1.0, 2, 2, 3]), np.array([5.0, 4, 6, 7])
    assert rank_correlation(*ties) == pytest.approx(spearmanr(*ties).statistic)


def expected_drops(
    running: Running, text: TokenizedText, *, mask: bool
) -> dict[frozenset[int], float]:
    """The drop for each set of tokens that is removed, or masked."""
    before = scores(running, sentence_of(text))
    label, drops = int(before.argmax()), {}
    for k in range(1, len(text.ids)):
        for chosen in combinations(range(len(text.ids)), k):
            rest = left(text, *chosen)
            if mask:
                ids = np.where(np.isin(np.arange(len(text.ids)), chosen), PAD, text.ids)
                rest = Sentence(ids, text.parse.heads)
            drops[frozenset(chosen)] = float(before[label] - scores(running, rest)[label])
    return drops


@pytest.mark.parametrize("mask", [False, True], ids=["deleted", "masked"])
def test_curves_lie_between_the_best_and_the_worst_of_all_orders(
    running: Running, mask: bool
) -> None:
    (text,), explained = ask(running, "Two kids wash hands", curves=True, evidence=True)
    drops, length = expected_drops(running, text, mask=mask), len(text.parse)

    def along(order: list[int] | tuple[int, ...]) -> list[float]:
        return [drops[frozenset(order[:k])] for k in range(1, length)]

    every = [float(np.mean(along(order))) for order in permutations(range(length))]
    (both,), (evidence,) = sides(explained, "curves"), sides(explained, "evidence")
    curves = both.masked if mask else both.deleted
    # Among four tokens the search finds the very best and worst order.
    assert curves.best.mean() == pytest.approx(max(every), abs=1e-5)
    assert curves.worst.mean() == pytest.approx(min(every), abs=1e-5)
    span = max(every) - min(every)
    attention = explained.sentences[0].pooling["sums"][0]
    for curve, name, weights in zip(
        curves.orders, ("attention", "evidence"), (attention, evidence.weights), strict=False
    ):
        assert curve.name == name
        order = np.argsort(-weights, kind="stable").tolist()
        removed, remaining = along(order), [drops[frozenset(order[k:])] for k in range(1, length)]
        np.testing.assert_allclose(curve.comprehensiveness, removed, atol=1e-5)
        np.testing.assert_allclose(curve.sufficiency, remaining, atol=1e-5)
        share = (np.mean(removed) - min(every)) / span
        assert curve.normalised_comprehensiveness == pytest.approx(share, abs=1e-4)
        share = (max(every) - np.mean(remaining)) / span
        assert curve.normalised_sufficiency == pytest.approx(share, abs=1e-4)
    random = curves.orders[2]
    assert random.name == "random"
    # Each random order is used forwards and backwards, so the two means mirror each other.
    removed_share = random.normalised_comprehensiveness
    assert random.normalised_sufficiency == pytest.approx(1 - removed_share, abs=1e-6)


def test_masked_words_keep_the_tree_and_the_other_composed_words() -> None:
    """A masked word of pieces is unknown."""
    vocab, heads = Vocab(["kids", "wash"], composed=2000), np.array([2, 0, 2, 2])
    words = build(["kids", "xyz", "wash", "abc"], heads, ["dep"] * 4, [True] * 4)
    sentence, some = vocab.sentence(words.tokens, heads), masked(vocab, words, {1, 2})
    assert some.ids.tolist() == [sentence.ids[0], PAD, PAD, sentence.ids[3]]
    np.testing.assert_array_equal(some.heads, heads)
    np.testing.assert_array_equal(present(some.features), present(sentence.features))
    pieces = build_pieces()
    parse = build(["the", "ballgame"], np.ones(2, int), ["dep"] * 2, [True] * 2)
    assert pieces.known(masked(pieces, parse, {1})).tolist() == [True, False]


def test_margins_differ_where_the_probability_rounds_to_one() -> None:
    certain = np.array([[1.0, 1e-30, 1e-40], [1.0, 1e-20, 1e-25]])
    odds = log_odds(certain, 0, multi_label=False)
    assert odds == pytest.approx(-np.log([1e-30, 1e-20]), rel=1e-4)
    assert log_odds(np.array([[0.8, 0.9]]), 0, multi_label=True) == pytest.approx([np.log(4)])


def test_the_sentence_is_capped_by_tokens_and_maps(tmp_path: Path, pipeline: BuiltParser) -> None:
    build_bundle(tmp_path, pipeline, explain=True)
    bundle = read(tmp_path / SST2)
    graph = ExplainGraph(bundle.files, bundle.card)
    assert graph.max_tokens == MAX_TOKENS
    graph.names = {**graph.names, "maps": ["one"] * 64}
    assert graph.max_tokens == 64  # 64 maps of 64 x 64
