"""A transformer in the place of the word table: pieces of words -> word vectors and one of the sentence.

MS-SAN+BERT (Qi et al. 2020, experiments): BERT takes the place of the embedding layer, and because the
distances are between words, a word's vector is the mean of its pieces' (MODELS.md). The sentence's is
[CLS], as in the paper, or the mean of all pieces, where that is what the transformer was trained to give.
"""

from typing import Literal, Self

import torch
from torch import Tensor, nn

from heedful.models.masks import token_mask


class PieceEmbedding(nn.Module):
    """[CLS], the pieces of L words, [SEP] -> L word vectors and the sentence's.

    `transformer` is called as Hugging Face's BertModel is. Frozen, it keeps its weights, takes no
    gradient and drops nothing out. `sentence`: the vector of [CLS], or the mean of all S, [CLS] and
    [SEP] among them.
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
        ends = 1 + pieces.cumsum(1)  # (B, L), behind [CLS]
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
    """Piece vectors (B, S, D) -> the mean of each word's (B, L, D); zero where a word has none.

    `pieces` (B, L) are their numbers, `ends` (B, L) where they stop.
    """
    position = torch.arange(hidden.shape[1], device=hidden.device)
    starts = ends - pieces
    inside = (position >= starts[:, :, None]) & (position < ends[:, :, None])  # (B, L, S)
    return inside.to(hidden.dtype) @ hidden / pieces.clamp(min=1)[:, :, None]
