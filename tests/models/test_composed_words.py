"""Composed words against a loop in numpy, and what is trained of them."""

import numpy as np
import torch
from torch import nn

from heedful.models.composed_words import SIGNATURE_WEIGHT, ComposedWords

F, SIGNATURE = 6, 2


def make() -> ComposedWords:
    table = nn.Embedding(5, 4, padding_idx=0)
    words = ComposedWords(table, rows=9, signature=SIGNATURE)
    words.reset(torch.Generator().manual_seed(1))
    return words


def test_it_is_the_mean_of_the_features_and_the_signature() -> None:
    words = make()
    features = np.array([[5, 6, 7, 0, 1, 2], [8, 0, 0, 0, 2, 2]])
    ids = np.array([[3, -1, 0], [-2, 4, -1]])
    table, rows = (one.weight.detach().numpy() for one in (words.table, words.features))
    expected = np.zeros((2, 3, 4))
    for b in range(2):
        for i in range(3):
            if ids[b, i] >= 0:
                expected[b, i] = table[ids[b, i]]
                continue
            mine = features[-ids[b, i] - 1]
            spelled = [rows[f] for f in mine[:-SIGNATURE] if f > 0]
            total = np.mean(spelled, axis=0)
            for f in mine[-SIGNATURE:]:
                total = total + SIGNATURE_WEIGHT * rows[f]
            expected[b, i] = total
    with torch.no_grad():
        found = words(torch.from_numpy(ids), torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_without_features_it_is_the_table() -> None:
    words = make()
    ids = torch.tensor([[1, 2, 0]])
    torch.testing.assert_close(words(ids, None), words.table(ids))


def test_the_signature_is_not_trained() -> None:
    words = make()
    features = torch.tensor([[5, 6, 7, 0, 1, 2]])
    words.compose(features).sum().backward()
    gradient = words.features.weight.grad
    assert gradient is not None
    moved = gradient.to_dense().abs().sum(1) > 0
    assert moved.tolist() == [i in (5, 6, 7) for i in range(9)]
