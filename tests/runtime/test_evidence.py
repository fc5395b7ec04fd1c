"""Signed evidence and curves of the built models, against numpy, one sentence at a time."""

from itertools import combinations, permutations

import numpy as np
import pytest

from heedful.runtime.answers import softmax
from heedful.runtime.engine.work import run_now
from heedful.runtime.errors import BadInput
from heedful.runtime.explain import gradients
from heedful.runtime.explain.correlation import rank_correlation
from heedful.runtime.explain.curves import masked
from heedful.runtime.explain.explain import check_length
from heedful.runtime.explain.run import ExplainOptions, log_odds
from heedful.text.arrays import Ints
from heedful.text.batch import PAD, Sentence
from heedful.text.structure import without
from heedful.text.trees import build
from heedful.text.vocab import Vocab
from tests.asking import present, whole
from tests.builders import ALPHA, build_pieces, expected_embedding
from tests.runtime.conftest import Running
from tests.runtime.test_explain import KIDS, ask, scores

SHORT = "Two kids wash hands"


@pytest.mark.parametrize(
    ("asked", "alpha"),
    [({}, ALPHA), ({"priors": {"dependency": False}}, 0.0), ({"alpha": 0.25}, 0.25)],
    ids=["as served", "without a prior", "another alpha"],
)
def test_evidence_is_the_change_without_each_token(
    running: Running, asked: dict[str, object], alpha: float
) -> None:
    (text,), explained = ask(running, KIDS, evidence=True, **asked)  # type: ignore[arg-type]  # of tests
    before = scores(running, Sentence(text.ids, text.parse.heads), alpha=alpha)
    label = int(before.argmax())
    assert explained.measured == ("negative", "positive")[label]
    (evidence,) = whole(explained.evidence)
    assert evidence.margins is not None
    for i, weight in enumerate(evidence.weights):
        gone = np.array([i])
        rest = Sentence(np.delete(text.ids, gone), without(text.parse.heads, gone))
        after = scores(running, rest, alpha=alpha)
        assert weight == pytest.approx(before[label] - after[label], abs=1e-5)
        odds = [np.log(one[label] / (1 - one[label])) for one in (before, after)]
        assert evidence.margins[i] == pytest.approx(odds[0] - odds[1], abs=1e-4)
    assert evidence.weights.min() < 0 < evidence.weights.max()


def test_evidence_of_a_pair_leaves_the_other_sentence_whole(running: Running) -> None:
    texts, explained = ask(running, KIDS, "A dog.", model="tiny-nli", evidence=True)
    first, second = (Sentence(text.ids, text.parse.heads) for text in texts)
    before = scores(running, first, second)
    label = int(before.argmax())
    of_second = whole(explained.evidence)[1]
    gone = np.array([1])
    rest = Sentence(np.delete(second.ids, gone), without(second.heads, gone))
    change = before[label] - scores(running, first, rest)[label]
    assert of_second.weights[1] == pytest.approx(change, abs=1e-5)
    assert ask(running, "Kids", evidence=True)[1].evidence == [None]


def test_a_model_without_an_answer_is_measured_by_the_cosine(running: Running) -> None:
    _, explained = ask(running, KIDS, model="tiny-nli", evidence=True)
    assert explained.measured == "cosine"
    (evidence,) = whole(explained.evidence)
    assert (evidence.weights > 0).all()
    assert evidence.margins is None


@pytest.mark.parametrize("model", ["tiny-sst2", "tiny-nli"])
def test_a_token_that_leaves_the_vector_as_it_is_has_no_evidence(
    running: Running, model: str
) -> None:
    """One word again and again has the same mean, but for rounding, however many of it are left."""
    asked = {"evidence": True, "faithfulness": True, "curves": True}
    for length in range(2, 12):
        _, explained = ask(running, " ".join(["kids"] * length), model=model, **asked)
        (evidence,), (curves,) = whole(explained.evidence), whole(explained.curves)
        (deletion,) = whole(explained.faithfulness)
        assert not evidence.weights.any()
        assert evidence.margins is None or not evidence.margins.any()
        assert {one.value for one in evidence.correlations} == {None}
        assert (deletion.drop, deletion.random, deletion.spread) == (0, 0, 0)
        assert {one.normalised_comprehensiveness for one in curves.deleted.orders} == {None}


def test_integrated_gradients_lead_from_zero_vectors_to_the_score(running: Running) -> None:
    texts, explained = ask(running, KIDS, "A dog.", model="tiny-nli", gradients=True)
    first, second = (Sentence(text.ids, text.parse.heads) for text in texts)
    before = scores(running, first, second)
    label = int(before.argmax())
    for side, evidence in enumerate(whole(explained.evidence)):
        found = present(evidence.gradients)
        vectors = [expected_embedding(one, ALPHA)[None] for one in (first, second)]
        vectors[side] *= 0  # tanh of nothing
        model = running.service.registry.models["tiny-nli"]
        logits, _ = run_now(model.logits(*vectors))
        assert found.score == pytest.approx(before[label], abs=1e-5)
        assert found.baseline == pytest.approx(softmax(logits.astype(float))[0, label], abs=1e-5)
        change = found.score - found.baseline
        assert present(found.error) <= 1e-4
        assert 0 <= found.spread <= gradients.TOLERANCE
        assert abs(found.weights.sum() - change) / abs(change) == pytest.approx(found.error)
        assert len(found.correlations) == len(evidence.correlations)
    (plain,) = whole(ask(running, KIDS, evidence=True)[1].evidence)
    assert plain.gradients is None


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

    one = integrate(INTERVALS=1, MAX_INTERVALS=1)
    assert (one.intervals, one.spread > 0.01) == (1, True)
    equal = integrate(INTERVALS=64, TOLERANCE=1.0)
    assert equal.intervals == 64
    halved = integrate(INTERVALS=1, TOLERANCE=one.spread / 8)
    assert 1 < halved.intervals < 64
    assert halved.spread <= one.spread / 8
    size = np.abs(equal.weights).sum()
    far = np.abs(one.weights - equal.weights).sum() / size
    assert np.abs(halved.weights - equal.weights).sum() / size < far / 4
    assert halved.weights.sum() == pytest.approx(halved.score - halved.baseline, abs=1e-5)
    assert integrate(INTERVALS=1, TOLERANCE=0.0, MAX_INTERVALS=20).intervals == 20


def test_correlations_name_every_map_pooling_and_gate(running: Running) -> None:
    _, explained = ask(running, KIDS, evidence=True)
    (evidence,) = whole(explained.evidence)
    found = {(one.kind, one.name): one.value for one in evidence.correlations}
    assert list(found) == [
        ("maps", "products"),
        ("pooling", "sums"),
        ("pooling", "mean"),
        ("gate", "gate"),
    ]
    pooling = explained.sentences[0].pooling["sums"][0]
    expected = rank_correlation(pooling, np.abs(evidence.weights))
    assert found["pooling", "sums"] == expected is not None
    assert found["pooling", "mean"] is None  # one weight for all tokens has no order


def test_rank_correlation_shares_the_ranks_of_equal_values() -> None:
    # By hand: ranks 1, 2.5, 2.5, 4 and 2, 1, 3, 4.
    assert rank_correlation(np.array([1.0, 2, 2, 3]), np.array([5.0, 4, 6, 7])) == pytest.approx(
        0.632455532
    )
    assert rank_correlation(np.arange(5.0), -np.arange(5.0)) == pytest.approx(-1)


def areas(drops: dict[frozenset[int], float], length: int) -> list[float]:
    """The mean drop along every order there is."""
    return [
        float(np.mean([drops[frozenset(order[:k])] for k in range(1, length)]))
        for order in permutations(range(length))
    ]


def expected_drops(
    running: Running, ids: Ints, heads: Ints, *, mask: bool
) -> dict[frozenset[int], float]:
    before = scores(running, Sentence(ids, heads))
    label = int(before.argmax())
    drops = {}
    for k in range(1, len(ids)):
        for chosen in combinations(range(len(ids)), k):
            gone = np.array(chosen)
            if mask:
                masked = ids.copy()
                masked[gone] = PAD
                rest = Sentence(masked, heads)
            else:
                rest = Sentence(np.delete(ids, gone), without(heads, gone))
            drops[frozenset(chosen)] = float(before[label] - scores(running, rest)[label])
    return drops


@pytest.mark.parametrize("mask", [False, True], ids=["deleted", "masked"])
def test_curves_lie_between_the_best_and_the_worst_of_all_orders(
    running: Running, mask: bool
) -> None:
    (text,), explained = ask(running, SHORT, curves=True, evidence=True)
    ids, length = text.ids, len(text.parse)
    drops = expected_drops(running, ids, text.parse.heads, mask=mask)
    every = areas(drops, length)
    (both,), (evidence,) = whole(explained.curves), whole(explained.evidence)
    curves = both.masked if mask else both.deleted
    # Among four tokens the search finds the very best and worst order.
    assert curves.best.mean() == pytest.approx(max(every), abs=1e-5)
    assert curves.worst.mean() == pytest.approx(min(every), abs=1e-5)
    span = max(every) - min(every)
    weights = {
        "attention": explained.sentences[0].pooling["sums"][0],
        "evidence": evidence.weights,
    }
    for curve in curves.orders[:2]:
        order = np.argsort(-weights[curve.name], kind="stable").tolist()
        removed = [drops[frozenset(order[:k])] for k in range(1, length)]
        kept = [drops[frozenset(order[k:])] for k in range(1, length)]
        np.testing.assert_allclose(curve.comprehensiveness, removed, atol=1e-5)
        np.testing.assert_allclose(curve.sufficiency, kept, atol=1e-5)
        assert curve.normalised_comprehensiveness == pytest.approx(
            (np.mean(removed) - min(every)) / span, abs=1e-4
        )
        assert curve.normalised_sufficiency == pytest.approx(
            (max(every) - np.mean(kept)) / span, abs=1e-4
        )
    random = curves.orders[2]
    assert random.name == "random"
    # Each random order is used forwards and backwards, so the two means mirror each other.
    removed_share = present(random.normalised_comprehensiveness)
    assert random.normalised_sufficiency == pytest.approx(1 - removed_share, abs=1e-6)


def test_masked_words_keep_the_tree_and_the_other_composed_words() -> None:
    vocab = Vocab(["kids", "wash"], composed=2000)
    sentence = vocab.sentence(["kids", "xyz", "wash", "abc"], np.array([2, 0, 2, 2]))
    some = vocab.masked(sentence, [1, 2])
    assert some.ids.tolist() == [sentence.ids[0], PAD, PAD, -1]
    np.testing.assert_array_equal(some.heads, sentence.heads)
    np.testing.assert_array_equal(present(some.features), present(sentence.features)[1:])
    np.testing.assert_array_equal(vocab.masked(sentence, [1, 3]).ids, [2, PAD, 3, PAD])


def test_a_masked_word_of_pieces_is_unknown() -> None:
    pieces = build_pieces()
    parse = build(["the", "ballgame", "is"], np.array([1, 1, 1]), ["dep"] * 3, [True] * 3)
    sentence = masked(pieces, parse, {1})
    assert pieces.known(sentence).tolist() == [True, False, True]
    np.testing.assert_array_equal(sentence.heads, parse.heads)


def test_a_long_sentence_has_no_curves(running: Running) -> None:
    model = running.service.registry.models["tiny-sst2"]
    long = build(["dog"] * 25, np.zeros(25, np.int64), ["dep"] * 25, [True] * 25)
    check_length(model, long, "inputs", ExplainOptions(evidence=True), "cut it")
    check_length(model, long, "inputs", ExplainOptions(gradients=True), "cut it")
    longer = build(["dog"] * 49, np.zeros(49, np.int64), ["dep"] * 49, [True] * 49)
    with pytest.raises(BadInput, match=r"has 49 tokens: .* explained up to 48 with gradients"):
        check_length(model, longer, "inputs", ExplainOptions(gradients=True), "cut it")
    with pytest.raises(BadInput, match=r"has 25 tokens: .* explained up to 24 with curves") as e:
        check_length(model, long, "inputs", ExplainOptions(curves=True), "cut it")
    assert (e.value.param, e.value.code) == ("inputs", "input_too_long")


def test_margins_differ_where_the_probability_rounds_to_one() -> None:
    certain = np.array([[1.0, 1e-30, 1e-40], [1.0, 1e-20, 1e-25]])
    odds = log_odds(certain, 0, several=False)
    assert odds == pytest.approx(-np.log([1e-30, 1e-20]), rel=1e-4)
    assert log_odds(np.array([[0.8, 0.9]]), 0, several=True) == pytest.approx([np.log(4)])
