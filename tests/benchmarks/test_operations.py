"""The count of operations, against counts by hand from the papers' equations."""

import pytest
import torch
from torch import nn

from benchmarks.operations import FUNCTION, count, counted
from heedful.models.disan import DiSAN
from heedful.models.ms_san import MSSAN


def test_single_operations_and_a_linear_layer() -> None:
    """For each of 3 x 5 values four products and four sums; torch folds the bias into the product."""
    assert counted(nn.Linear(4, 5), torch.zeros(3, 4)) == 3 * 5 * (4 + 4)
    for module, each in ((nn.Tanh(), FUNCTION), (nn.Softmax(-1), FUNCTION), (nn.ReLU(), 1)):
        assert counted(module, torch.zeros(3, 4)) == 12 * each


@pytest.mark.parametrize("length", [12, 48])
def test_ms_san(length: int) -> None:
    """Nearly all are in eq. (1)-(10) and (12)'s D x D products, and the two products of attention."""
    D = 300
    products = 2 * length * D * D * (4 + 4 + 2 + 2) + 2 * 2 * length * length * D
    found = count(MSSAN(), length, D)
    assert products < found < 1.05 * products


@pytest.mark.parametrize("length", [12, 48])
def test_disan(length: int) -> None:
    """Eq. (14)-(20) twice, eq. (12) over 2 D; for each pair and feature a tanh, an exp and nine single ones."""
    D = 300
    products = 2 * length * (2 * 5 * D * D + 2 * (2 * D) ** 2)
    pairs = 2 * length * length * D * (2 * FUNCTION + 2 * 2)
    found = count(DiSAN(), length, D)
    assert products + pairs < found < 1.05 * (products + pairs)
