"""The relatedness head against its formula; the NLI and classification heads stand with their papers."""

import math

import numpy as np
import torch

from heedful.models.heads import RelatednessHead, expected_score


def test_relatedness_is_the_formula_of_tai_et_al() -> None:
    torch.manual_seed(0)
    head = RelatednessHead(6, hidden=4, dropout=0.5).eval()
    w_1, b_1, w_2, b_2 = (p.detach().numpy() for p in head.parameters())
    a, b = np.random.default_rng(0).normal(size=(2, 3, 6)).astype(np.float32)
    logits = head(torch.from_numpy(a), torch.from_numpy(b))
    expected = []
    for x, y in zip(a, b, strict=True):
        features = [*map(abs, x - y), *(x * y)]
        hidden = [1 / (1 + math.exp(-value)) for value in w_1 @ features + b_1]
        scores = np.exp(w_2 @ hidden + b_2)
        expected.append(sum((i + 1) * s for i, s in enumerate(scores)) / sum(scores))
    found = expected_score(logits)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5)
    assert logits.shape == (3, 5)
    assert ((found >= 1) & (found <= 5)).all()


def test_relatedness_does_not_know_which_sentence_is_first() -> None:
    head, (a, b) = RelatednessHead(5), torch.randn(2, 4, 5)
    torch.testing.assert_close(head(a, b), head(b, a))
