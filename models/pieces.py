"""A transformer in place of the word table: word pieces -> word vectors and a sentence vector.

MS-SAN+BERT (Qi et al. 2020, experiments): BERT replaces the embedding layer, and because distances are
between words, a word's vector is the mean of its pieces' vectors (docs/models.md). The sentence vector is
[CLS], as in the paper, or the mean of all pieces for a transformer trained with mean pooling.
"""

from typing import Literal, Self

import torch
from torch import Tensor, nn

from heedful.models.masks import token_mask


class PieceEmbedding(nn.Module):
    """[CLS], the pieces of L words, [SEP] -> L word vectors and the sentence's.

    `transformer` has the interface of Hugging Face's BertModel. A frozen one has no gradient and no
    dropout. `sentence` is the vector of [CLS], or the mean of all S vectors, [CLS] and [SEP] included.
    """

    def __init__(
        self, transformer: nn.Module, *, frozen: bool, sentence: Literal["cls", "mean"] = "cls"
    ) -> None:
        super().__init__()
        self.sentence = sentence
        self.transformer = transformer.requires_grad_(False) if frozen else transformer
        self.frozen = frozen

    def forward(self, ids: Tensor, pieces: Tensor) -> tuple[Tensor, Tensor]:
        """ids (B, S), pieces of each word (B, L), 0 for padding -> (B, L, D), zero for padding, and (B, D)."""
        ends = 1 + pieces.cumsum(1)  # (B, L), after [CLS]
        mask = token_mask(ends[:, -1] + 1, ids.shape[1])  # (B, S), [SEP] is the last inside
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            hidden = self.transformer(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        words = word_means(hidden, pieces, ends)
        if self.sentence == "cls":
            return words, hidden[:, 0]
        inside = mask[:, :, None].to(hidden.dtype)
        return words, (hidden * inside).sum(1) / inside.sum(1)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        self.transformer.train(mode and not self.frozen)
        return self


def word_means(hidden: Tensor, pieces: Tensor, ends: Tensor) -> Tensor:
    """Piece vectors (B, S, D) -> each word's mean (B, L, D); zero for a word without pieces.

    `pieces` (B, L) are the numbers of each word's pieces, `ends` (B, L) the positions after its last piece.
    """
    position = torch.arange(hidden.shape[1], device=hidden.device)
    starts = ends - pieces
    inside = (position >= starts[:, :, None]) & (position < ends[:, :, None])  # (B, L, S)
    return inside.to(hidden.dtype) @ hidden / pieces.clamp(min=1)[:, :, None]
