"""Sentence vectors that carry their first words, and a head that aligns the words of two sentences.

The words are compared late (Khattab and Zaharia 2020, ColBERT): each sentence is still encoded by itself. The head is
that of Parikh et al. 2016, A Decomposable Attention Model for Natural Language Inference, in addition to `NLIHead`.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.heads import NLIHead, two_layers

WORDS = 40
"""Words that a sentence vector carries; later words are only in the rest of the vector."""
ABSENT = -1e4
"""Score of a missing word: lower than any other, and finite where a sentence has no word."""


class FirstWords(nn.Module):
    """(B, L, dim) -> the first WORDS words, `size` features each, as (B, WORDS * size); zero where there is no word."""

    def __init__(self, dim: int, size: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(dim, size)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, dim), mask (B, L) boolean -> (B, WORDS * size)."""
        words = self.reduce(x) * mask[:, :, None].to(x.dtype)
        return functional.pad(words, (0, 0, 0, WORDS))[:, :WORDS].flatten(1)


class AlignedNLIHead(NLIHead):
    """Two experts: NLIHead over the sentence vectors, and the same classes by the sentences' aligned words.

    Their answer is a product of experts (Hinton 2002): the mean of their log probabilities. With `gated` the weights of
    that mean depend on the pair (Jacobs et al. 1991, Adaptive Mixtures of Local Experts): the aligned words recognise
    pairs of nearly the same words, whose sentence vectors are nearly equal.
    Eq. (1)-(7) of Parikh et al. with a linear layer for F, and with the mean and the maximum of the compared words in
    place of their sum, so that long sentences weigh no more than short ones. `size` is that of `FirstWords`; a compared
    word has as many features.
    """

    def __init__(
        self,
        dim: int,
        *,
        size: int,
        gated: bool,
        hidden: int = 300,
        classes: int = 3,
        dropout: float = 0.0,
    ) -> None:
        self.sentence = dim - WORDS * size
        super().__init__(self.sentence, hidden=hidden, classes=classes, dropout=dropout)
        self.size = size
        self.attend = nn.Linear(size, size)
        self.compare = nn.Sequential(nn.Dropout(dropout), nn.Linear(4 * size, size), nn.ReLU())
        self.aggregate = two_layers(4 * size, hidden, classes, dropout, nn.ReLU)
        self.gate = nn.Linear(4 * size, 1) if gated else None

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Premise (B, D) and hypothesis (B, D) -> logits (B, classes)."""
        return _product(*self._answers(first, second))

    def experts(self, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
        """The logits (B, classes) by the sentence vectors, by the aligned words and, with a gate, of their product.

        Each is trained with its own loss: one loss for their product leaves the words with nothing to learn. The third
        trains the gate alone.
        """
        by_sentence, by_words, share = self._answers(first, second)
        if self.gate is None:
            return by_sentence, by_words
        return by_sentence, by_words, _product(by_sentence.detach(), by_words.detach(), share)

    def _answers(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor | float]:
        """The logits (B, classes) of both experts, and the weight (B, 1) of the second."""
        by_sentence = super().forward(first[:, : self.sentence], second[:, : self.sentence])
        (a, present_a), (b, present_b) = (
            _words(side[:, self.sentence :], self.size) for side in (first, second)
        )
        attended_a, attended_b = (
            _apply_to_present(self.attend, present, words)
            for present, words in ((present_a, a), (present_b, b))
        )
        scores = attended_a @ attended_b.transpose(1, 2) / self.size**0.5  # (B, L of a, L of b)
        beta = scores.masked_fill(~present_b[:, None, :], ABSENT).softmax(2) @ b
        alpha = scores.masked_fill(~present_a[:, :, None], ABSENT).softmax(1).transpose(1, 2) @ a
        parts = [*self._compared(a, beta, present_a), *self._compared(b, alpha, present_b)]
        compared = torch.cat(parts, dim=-1)
        share = 0.5 if self.gate is None else self.gate(compared.detach()).sigmoid()
        return by_sentence, self.aggregate(compared), share

    def _compared(self, words: Tensor, aligned: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the maximum (B, size) over a sentence's words (B, L, size)."""

        def compare(a: Tensor, b: Tensor) -> Tensor:
            compared: Tensor = self.compare(torch.cat([a, b, a - b, a * b], dim=-1))
            return compared

        # Never negative, so that the zeros of missing words do not change the maximum.
        compared = _apply_to_present(compare, present, words, aligned)
        return compared.sum(1) / present.sum(1, keepdim=True).clamp(min=1), compared.amax(1)


def _product(first: Tensor, second: Tensor, share: Tensor | float) -> Tensor:
    """Logits (B, classes) of two experts -> the mean of their log probabilities, `share` the weight of the second."""
    return (1 - share) * first.log_softmax(-1) + share * second.log_softmax(-1)


def _apply_to_present(
    function: Callable[..., Tensor], present: Tensor, *features: Tensor
) -> Tensor:
    """Apply `function` to features (B, L, E) where a word is present (B, L) -> (B, L, F); zero elsewhere.

    It does not compute the padding, which is half of a batch.
    """
    flat = present.flatten()
    places = flat.nonzero().squeeze(1)  # (W,)
    results = function(*(feature.flatten(0, 1).index_select(0, places) for feature in features))
    rows = torch.where(flat, flat.cumsum(0), 0)  # row 0: no word
    padded: Tensor = functional.pad(results, (0, 0, 1, 0)).index_select(0, rows)
    unflattened: Tensor = padded.unflatten(0, present.shape)
    return unflattened


def _words(features: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """(B, WORDS * size) -> words (B, L, size) and whether each exists (B, L), with L of the longest, to save time."""
    words = features.unflatten(1, (WORDS, size))
    present = words.abs().amax(-1) > 0
    longest = cast(int, present.any(0).sum().clamp(min=1).item())  # int(..) stops the exporter
    torch._check(longest <= WORDS)  # for the exporter
    return words[:, :longest], present[:, :longest]
