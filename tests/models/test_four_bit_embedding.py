"""Words that are trained as they are stored."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.export.weight_storage import Storage, store_tables
from heedful.models.four_bit_embedding import FourBitEmbedding, rounded
from heedful.models.sentence import word_table


def table(rows: int = 50, size: int = 60) -> FourBitEmbedding:
    weights = torch.randn(rows, size, generator=torch.Generator().manual_seed(1))
    weights[0] = 0
    layer = word_table(weights, frozen=False, four_bits=True)
    assert isinstance(layer, FourBitEmbedding)
    return layer


@pytest.mark.parametrize("storage", ["normal", "small"])
def test_it_reads_what_a_bundle_stores(storage: Storage) -> None:
    """Also of a small table, which would else be stored in 8 bits."""
    layer, ids = table(), torch.arange(50).view(5, 10)
    stored = nn.Sequential(table())
    store_tables(stored, storage)
    torch.testing.assert_close(layer(ids), stored(ids), rtol=0, atol=0)


def test_no_other_level_lies_nearer() -> None:
    row = np.random.default_rng(1).standard_normal(30).astype(np.float32)
    least, most = np.float32(np.float16(row.min())), row.max()
    step = np.float32(np.float16((most - least) / 15))
    levels = least + step * np.arange(16)
    nearest = levels[np.abs(row[:, None] - levels).argmin(1)]
    np.testing.assert_allclose(rounded(torch.from_numpy(row)[None])[0], nearest, atol=1e-6)


def test_the_gradient_is_that_of_a_table_that_rounds_nothing() -> None:
    layer, plain = table(), word_table(table().weight.detach(), frozen=False)
    ids = torch.tensor([3, 3, 7])
    pull = torch.randn(3, 60, generator=torch.Generator().manual_seed(2))
    for one in (layer, plain):
        (one(ids) * pull).sum().backward()
    assert layer.weight.grad is not None
    assert plain.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad.to_dense(), plain.weight.grad.to_dense())
