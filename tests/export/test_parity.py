"""The parity check itself: what it looks at, and that it fails where it must."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from heedful.export.errors import ParityError
from heedful.export.parity import ParityModel, cases, check
from heedful.export.weight_storage import round_weights
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, HEAD
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.structure import check_heads
from heedful.text.vocab import UNKNOWN
from tests.export.trained import MAX_TOKENS, WORDS, trained


def test_the_cases_reach_every_extreme() -> None:
    found = list(cases(WORDS, MAX_TOKENS))
    assert {len(case.batch.lengths) for case in found} >= {1, 2, 7, 64, 512}
    assert {case.batch.ids.shape[1] for case in found} >= {1, 2, 3, MAX_TOKENS}
    assert {case.alpha for case in found} >= {0.0, 0.1, 0.5, 1.0, 2.0}
    for case in found:
        assert case.batch.lengths.min() >= 1
        assert case.batch.ids.max() < WORDS
        for heads, length in zip(case.batch.heads, case.batch.lengths, strict=True):
            check_heads(heads[:length])
    assert any((one.batch.ids[0, : one.batch.lengths[0]] == UNKNOWN).all() for one in found)
    for case in cases(2, 1):  # of a model of one token and no words
        assert case.batch.ids.shape[1] == 1


@pytest.fixture
def model() -> ParityModel:
    start = trained("nli")
    assert start.head is not None
    return ParityModel(start.model.eval(), start.head.eval(), HEAD_INPUTS["nli"])


def graphs(bundle: Bundle) -> dict[str, bytes]:
    return {"encoder": bundle.files[ENCODER], "head": bundle.files[HEAD]}


def rounded(model: ParityModel) -> ParityModel:
    again = copy.deepcopy(model)
    assert again.head is not None
    round_weights(again.encoder)
    round_weights(again.head)
    return again


def test_it_measures_rounding_apart_from_the_export(nli: Bundle, model: ParityModel) -> None:
    parity = check(graphs(nli), rounded(model), model, WORDS, MAX_TOKENS)
    assert parity.error < 1e-5
    assert 1e-4 < parity.loss < 0.1
    assert parity.cases == len(list(cases(WORDS, MAX_TOKENS)))
    assert nli.card.parity.cases == parity.cases


def shift(module: nn.Module, name: str, value: float) -> None:
    with torch.no_grad():
        module.get_parameter(name)[0] += value


@pytest.mark.parametrize(
    ("change", "graph"),
    [
        (lambda model: shift(model.encoder, "encoder.norm.bias", 2e-4), "encoder"),
        (lambda model: shift(model.encoder, "encoder.norm.bias", float("nan")), "encoder"),
        (lambda model: shift(model.head, "layers.4.bias", 2e-4), "head"),
    ],
    ids=["encoder", "not a number", "head"],
)
def test_a_difference_fails_and_names_graph_and_case(
    nli: Bundle, model: ParityModel, change: Callable[[ParityModel], None], graph: str
) -> None:
    other = rounded(model)
    change(other)
    with pytest.raises(ParityError, match=f"the {graph} graph is .* away from torch on a chain"):
        check(graphs(nli), other, model, WORDS, MAX_TOKENS)


def test_too_few_rounds_of_pointer_doubling_are_found(nli: Bundle, model: ParityModel) -> None:
    """The deepest tree is what tells them apart: shallow ones agree."""
    other = rounded(model)
    other.encoder.encoder.get_submodule("attention").rounds = 5  # type: ignore[assignment]  # nn.Module hides it
    with pytest.raises(ParityError, match="on a chain of 40 tokens"):
        check(graphs(nli), other, model, WORDS, MAX_TOKENS)
