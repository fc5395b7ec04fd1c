"""Pieces: words -> the WordPiece ids of a transformer, by its `tokenizer.json`.

spaCy's words stay the unit of trees, distances and attention: each word is split by itself, so that
every piece belongs to one word, and a word's vector is the mean of its pieces'. [CLS] and [SEP] stand
around a sentence. The tokenizer is Hugging Face's `tokenizers`, which needs no torch.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from heedful.text.batch import Sentence
from heedful.text.vocab import Vocab

Ints = npt.NDArray[np.int64]

PIECES_PER_WORD = 100
"""A word of more pieces is unknown, one [UNK]: WordPiece has that rule for a word of more than 100
characters; here it also holds for what only spaCy takes for one word (a URL, Chinese without blanks)."""
REMEMBERED = 65_536
"""Words whose pieces are kept: a look-up takes a fiftieth of splitting."""


class Pieces:
    """A tokenizer applied word by word. `limit`: pieces the transformer reads, [CLS] and [SEP] among them.

    `text` is what its file holds.
    """

    def __init__(self, tokenizer: Tokenizer, limit: int) -> None:
        """Raises ValueError where the tokenizer lacks [CLS], [SEP] or [UNK], or no word fits."""
        if limit < 3:
            raise ValueError(f"{limit} pieces hold no word: [CLS] and [SEP] are two of them")
        tokenizer.no_padding()
        tokenizer.enable_truncation(limit)  # where `save` keeps the limit, as the format has it
        self.text = tokenizer.to_str(pretty=True) + "\n"
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is three words like any other
        self._tokenizer, self.limit = tokenizer, limit
        self._cls, self._sep, self._unknown = map(self._special, ("[CLS]", "[SEP]", "[UNK]"))
        self._longest_word = min(PIECES_PER_WORD, limit - 2)
        self._pieces = lru_cache(maxsize=REMEMBERED)(self._split)

    def __len__(self) -> int:
        """Of the transformer's table: one above the largest id."""
        return max(self._tokenizer.get_vocab().values()) + 1

    def split(self, tokens: Sequence[str]) -> tuple[Ints, Ints]:
        """Pieces of all words in a row, and how many each word (L,) has: one at least.

        A word that the tokenizer takes for nothing (a zero-width joiner) is [UNK] too.
        """
        words = [self._pieces(token) for token in tokens]
        counts = np.fromiter(map(len, words), np.int64, len(words))
        return np.fromiter(chain.from_iterable(words), np.int64, int(counts.sum())), counts

    def framed(self, ids: Ints, heads: Ints, counts: Ints) -> Sentence:
        """A sentence of pieces that `split` gave, [CLS] and [SEP] around them."""
        return Sentence(np.concatenate([[self._cls], ids, [self._sep]]), heads, counts)

    def sentence(self, tokens: Sequence[str], heads: Ints) -> Sentence:
        ids, counts = self.split(tokens)
        return self.framed(ids, heads, counts)

    def fitting(self, tokens: Sequence[str]) -> int:
        """How many of the first words fit into `limit` pieces."""
        _, counts = self.split(tokens)
        return int(np.searchsorted(np.cumsum(counts), self.limit - 2, side="right"))

    def word_ids(self, sentence: Sentence) -> Ints:
        """(L,) the id of each word's first piece."""
        ids: Ints = sentence.ids[_starts(sentence)]
        return ids

    def known(self, sentence: Sentence) -> npt.NDArray[np.bool_]:
        """(L,) whether a word was split without [UNK]."""
        known: npt.NDArray[np.bool_] = np.logical_and.reduceat(
            sentence.ids[:-1] != self._unknown, _starts(sentence)
        )
        return known

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote; ValueError where it is none."""
        return cls.read(path.read_bytes())

    @classmethod
    def read(cls, content: bytes) -> Self:
        """The tokenizer in the bytes of a `tokenizer.json` that holds its limit; ValueError where they are none."""
        try:
            tokenizer = Tokenizer.from_str(content.decode())
        except Exception as error:  # tokenizers raises nothing narrower
            raise ValueError(f"is not a tokenizer: {error}") from error
        if tokenizer.truncation is None:
            raise ValueError("does not say how many pieces are read (truncation)")
        return cls(tokenizer, tokenizer.truncation["max_length"])

    def save(self, path: Path) -> None:
        path.write_text(self.text, encoding="utf-8", newline="\n")

    def _special(self, piece: str) -> int:
        found = self._tokenizer.token_to_id(piece)
        if found is None:
            raise ValueError(f"the tokenizer has no {piece}")
        return int(found)

    def _split(self, word: str) -> tuple[int, ...]:
        ids = self._tokenizer.encode(word, add_special_tokens=False).ids
        return tuple(ids) if 0 < len(ids) <= self._longest_word else (self._unknown,)


Lexicon = Vocab | Pieces
"""What turns a bundle's words into ids."""


def _starts(sentence: Sentence) -> Ints:
    """(L,) where each word's pieces begin, behind [CLS]."""
    assert sentence.pieces is not None, "a sentence of pieces"
    starts: Ints = 1 + np.cumsum(sentence.pieces) - sentence.pieces
    return starts
