"""Signed evidence and curves of the built models, against numpy, one sentence at a time."""

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from heedful.runtime.answers import TokenizedText, softmax
from heedful.runtime.engine.work import run_now
from heedful.runtime.errors import BadInput
from heedful.runtime.explain import gradients
from heedful.runtime.explain.correlation import rank_correlation
from heedful.runtime.explain.curves import masked
from heedful.runtime.explain.explain import check_length
from heedful.runtime.explain.run import ExplainOptions, log_odds
from heedful.text.batch import PAD, Sentence
from heedful.text.trees import build
from heedful.text.vocab import Vocab
from tests.asking import present, whole
from tests.builders import ALPHA, build_pieces, expected_embedding
from tests.runtime.conftest import Running
from tests.runtime.test_explain import KIDS, NLI, ask, left, scores, sentence_of


@pytest.mark.parametrize(
    ("options", "alpha"),
    [({}, ALPHA), ({"priors": {"dependency": False}}, 0.0), ({"alpha": 0.25}, 0.25)],
    ids=["as served", "without a prior", "another alpha"],
)
def test_evidence_is_the_change_without_each_token(
    running: Running, options: dict[str, Any], alpha: float
) -> None:
    (text,), explained = ask(running, KIDS, evidence=True, **options)
    before = scores(running, sentence_of(text), alpha=alpha)
    label = int(before.argmax())
    assert explained.measured == ("negative", "positive")[label]
    (evidence,) = whole(explained.evidence)
    assert evidence.margins is not None
    assert evidence.gradients is None
    for i, weight in enumerate(evidence.weights):
        after = scores(running, left(text, i), alpha=alpha)
        assert weight == pytest.approx(before[label] - after[label], abs=1e-5)
        odds = [np.log(p[label] / (1 - p[label])) for p in (before, after)]
        assert evidence.margins[i] == pytest.approx(odds[0] - odds[1], abs=1e-4)
    assert evidence.weights.min() < 0 < evidence.weights.max()


def test_evidence_of_a_pair_leaves_the_other_sentence_whole(running: Running) -> None:
    (first, second), explained = ask(running, KIDS, "A dog.", model=NLI, evidence=True)
    before = scores(running, sentence_of(first), sentence_of(second))
    label = int(before.argmax())
    after = scores(running, sentence_of(first), left(second, 1))
    weights = whole(explained.evidence)[1].weights
    assert weights[1] == pytest.approx(before[label] - after[label], abs=1e-5)
    assert ask(running, "Kids", evidence=True)[1].evidence == [None]


@pytest.mark.parametrize("model", ["tiny-sst2", NLI])
def test_a_token_that_leaves_the_vector_as_it_is_has_no_evidence(
    running: Running, model: str
) -> None:
    """A repeated word has the same mean, but for rounding, for any number of repetitions."""
    options = {"evidence": True, "faithfulness": True, "curves": True}
    for length in range(2, 12):
        _, explained = ask(running, " ".join(["kids"] * length), model=model, **options)
        (evidence,), (curves,) = whole(explained.evidence), whole(explained.curves)
        (deletion,) = whole(explained.faithfulness)
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
    for side, evidence in enumerate(whole(explained.evidence)):
        path = present(evidence.gradients)
        vectors = [expected_embedding(sentence, ALPHA)[None] for sentence in sentences]
        vectors[side] *= 0  # tanh of nothing
        logits, _ = run_now(running.service.registry.models[NLI].logits(*vectors))
        assert path.score == pytest.approx(before[label], abs=1e-5)
        assert path.baseline == pytest.approx(softmax(logits.astype(float))[0, label], abs=1e-5)
        change = path.score - path.baseline
        assert present(path.error) <= 1e-4
        assert 0 <= path.spread <= gradients.TOLERANCE
        assert abs(path.weights.sum() - change) / abs(change) == pytest.approx(path.error)
        assert len(path.correlations) == len(evidence.correlations)


def test_intervals_are_halved_until_both_orders_agree(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def integrate(**constants: float) -> gradients.Gradients:
        with monkeypatch.context() as patch:
            for name, value in constants.items():
                patch.setattr(gradients, name, value)
            _, explained = ask(running, KIDS, gradients=True)
        (evidence,) = whole(explained.evidence)
        return present(evidence.gradients)

    single = integrate(INTERVALS=1, MAX_INTERVALS=1)
    assert (single.intervals, single.spread > 0.01) == (1, True)
    equal = integrate(INTERVALS=64, TOLERANCE=1.0)
    assert equal.intervals == 64
    halved = integrate(INTERVALS=1, TOLERANCE=single.spread / 8)
    assert 1 < halved.intervals < 64
    assert halved.spread <= single.spread / 8
    far, near = (np.abs(path.weights - equal.weights).sum() for path in (single, halved))
    assert near < far / 4
    assert halved.weights.sum() == pytest.approx(halved.score - halved.baseline, abs=1e-5)
    assert integrate(INTERVALS=1, TOLERANCE=0.0, MAX_INTERVALS=20).intervals == 20


def test_correlations_name_every_map_pooling_and_gate(running: Running) -> None:
    _, explained = ask(running, KIDS, evidence=True)
    (evidence,) = whole(explained.evidence)
    values = {(part.kind, part.name): part.value for part in evidence.correlations}
    names = [("maps", "products"), ("pooling", "sums"), ("pooling", "mean"), ("gate", "gate")]
    assert list(values) == names
    pooling = explained.sentences[0].pooling["sums"][0]
    expected = rank_correlation(pooling, np.abs(evidence.weights))
    assert values["pooling", "sums"] == expected is not None
    assert values["pooling", "mean"] is None  # one weight for all tokens has no order
    # Equal values share their ranks. By hand: ranks 1, 2.5, 2.5, 4 and 2, 1, 3, 4.
    shared = rank_correlation(np.array([1.0, 2, 2, 3]), np.array([5.0, 4, 6, 7]))
    assert shared == pytest.approx(0.632455532)
    assert rank_correlation(np.arange(5.0), -np.arange(5.0)) == pytest.approx(-1)


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
    (both,), (evidence,) = whole(explained.curves), whole(explained.evidence)
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
    removed_share = present(random.normalised_comprehensiveness)
    assert random.normalised_sufficiency == pytest.approx(1 - removed_share, abs=1e-6)


def test_masked_words_keep_the_tree_and_the_other_composed_words() -> None:
    """A masked word of pieces is unknown."""
    vocab = Vocab(["kids", "wash"], composed=2000)
    sentence = vocab.sentence(["kids", "xyz", "wash", "abc"], np.array([2, 0, 2, 2]))
    some = vocab.masked(sentence, [1, 2])
    assert some.ids.tolist() == [sentence.ids[0], PAD, PAD, -1]
    np.testing.assert_array_equal(some.heads, sentence.heads)
    np.testing.assert_array_equal(present(some.features), present(sentence.features)[1:])
    np.testing.assert_array_equal(vocab.masked(sentence, [1, 3]).ids, [2, PAD, 3, PAD])
    pieces = build_pieces()
    parse = build(["the", "ballgame", "is"], np.array([1, 1, 1]), ["dep"] * 3, [True] * 3)
    sentence = masked(pieces, parse, {1})
    assert pieces.known(sentence).tolist() == [True, False, True]
    np.testing.assert_array_equal(sentence.heads, parse.heads)


@pytest.mark.parametrize(
    ("length", "options", "reason"),
    [
        (25, ExplainOptions(evidence=True), None),
        (25, ExplainOptions(gradients=True), None),
        (49, ExplainOptions(gradients=True), "has 49 tokens: .* explained up to 48 with gradients"),
        (25, ExplainOptions(curves=True), "has 25 tokens: .* explained up to 24 with curves"),
    ],
)
def test_a_long_sentence_has_no_curves(
    running: Running, length: int, options: ExplainOptions, reason: str | None
) -> None:
    model = running.service.registry.models["tiny-sst2"]
    heads, names, spaces = np.zeros(length, np.int64), ["dep"] * length, [True] * length
    parse = build(["dog"] * length, heads, names, spaces)
    if reason is None:
        check_length(model, parse, "inputs", options, "cut it")
    else:
        with pytest.raises(BadInput, match=reason) as caught:
            check_length(model, parse, "inputs", options, "cut it")
        assert (caught.value.param, caught.value.code) == ("inputs", "input_too_long")


def test_margins_differ_where_the_probability_rounds_to_one() -> None:
    certain = np.array([[1.0, 1e-30, 1e-40], [1.0, 1e-20, 1e-25]])
    odds = log_odds(certain, 0, multi_label=False)
    assert odds == pytest.approx(-np.log([1e-30, 1e-20]), rel=1e-4)
    assert log_odds(np.array([[0.8, 0.9]]), 0, multi_label=True) == pytest.approx([np.log(4)])
