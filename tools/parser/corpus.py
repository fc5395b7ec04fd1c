"""What the arc parser learns from: words as rows of hashed tables, governors and relations with their shares.

Gold trees give each word one governor; the teacher's (`tools.parser.soft_trees`) share it among a few. A text of
a batch is one to four sentences, as requests are.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
from spacy.attrs import NORM, ORTH
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from torch import Tensor

from heedful.text.arrays import Bytes, Hashes, Ints
from heedful.text.batch import plan
from heedful.text.hashed_words import hashed_rows
from heedful.text.tokenize import ATTRIBUTES
from tools.parser.soft_trees import CANDIDATES, SoftTrees
from tools.parser.treebank import SENTENCES_A_DOCUMENT

ALL = 255
"""The share of a word's only governor."""
COLUMNS = [ORTH, NORM, *ATTRIBUTES]
CELLS = 3000
"""Words of a batch, padding counted."""
LONGEST = 160
"""Words of a text of several sentences."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """T texts of N words altogether."""

    starts: Ints  # (T + 1,), where each text begins among the words
    words: Hashes  # (N, 6): ORTH, NORM and the ATTRIBUTES
    heads: npt.NDArray[np.int16]  # (N, CANDIDATES), counted from 1 in the text; 0 is the root
    head_shares: Bytes  # (N, CANDIDATES), of 255; all 0 for a word that teaches nothing
    names: Bytes  # (N, CANDIDATES), relations to the first of `heads`
    name_shares: Bytes  # (N, CANDIDATES), of 255

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)


def gold(nlp: Language, documents: Sequence[Doc], labels: Sequence[str]) -> Corpus:
    """A treebank's documents in the tokens of `nlp`; those with white space among their tokens are left out."""
    number = {name: i for i, name in enumerate(labels)}
    words, heads, names = [], [], []
    for reference in documents:
        read = nlp.make_doc(reference.text)
        if not len(read) or any(token.is_space for token in read):
            continue
        own, relations = Example(read, reference).get_aligned_parse(projectivize=False)
        words.append(read.to_array(COLUMNS))
        heads.append(
            [-1 if head is None else 0 if head == i else head + 1 for i, head in enumerate(own)]
        )
        names.append([number.get(relation or "", -1) for relation in relations])
    flat_heads, flat_names = (np.concatenate(column) for column in (heads, names))
    return Corpus(
        _starts([len(one) for one in words]),
        np.concatenate(words),
        _first(flat_heads),
        _first(ALL * (flat_heads >= 0)).astype(np.uint8),
        _first(flat_names).astype(np.uint8),
        _first(ALL * (flat_names >= 0)).astype(np.uint8),
    )


def silver(nlp: Language, parts: Sequence[SoftTrees]) -> Corpus:
    """The teacher's. Raises ValueError where `nlp` makes other tokens than the teacher read."""
    words = [nlp.make_doc(text).to_array(COLUMNS) for part in parts for text in part.texts]
    lengths = np.concatenate([part.lengths for part in parts])
    if not np.array_equal(lengths, [len(one) for one in words]):
        raise ValueError("the soft trees were made with another tokenizer: remove them")
    heads, head_shares, names, name_shares = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("heads", "head_shares", "names", "name_shares")
    )
    heads = np.where(head_shares > 0, heads, 0)  # where a text has fewer words than candidates
    return Corpus(
        _starts(lengths),
        np.concatenate(words),
        heads.astype(np.int16),
        head_shares,
        names,
        name_shares,
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """B texts of at most L words, T of them different."""

    rows: Tensor  # (T, F)
    places: Tensor  # (B, L), counted from 1; 0 after a text's end
    heads: Tensor  # (B, L, CANDIDATES)
    head_shares: Tensor  # (B, L, CANDIDATES), 0..1
    names: Tensor
    name_shares: Tensor


class Reader:
    """Makes batches of a corpus."""

    def __init__(self, corpus: Corpus, tables: Sequence[int]) -> None:
        self.corpus = corpus
        _, first, self._kinds = np.unique(
            corpus.words[:, :2], axis=0, return_index=True, return_inverse=True
        )
        self._rows = hashed_rows(corpus.words[first, 2:], tables)

    def batch(self, texts: Sequence[Sequence[int]]) -> Batch:
        """Each of `texts` joins texts of the corpus, by their numbers."""
        kept, corpus = [], self.corpus
        for numbers in texts:
            spans = [np.arange(*corpus.starts[i : i + 2]) for i in numbers]
            before = np.repeat(np.cumsum([0, *map(len, spans[:-1])]), [len(one) for one in spans])
            kept.append((np.concatenate(spans), before))
        size = (len(texts), max(len(words) for words, _ in kept))
        places = np.zeros(size, np.int64)
        targets = [np.zeros((*size, CANDIDATES), np.int64) for _ in range(4)]
        sources = [getattr(corpus, field.name) for field in fields(corpus)[2:]]
        for row, (words, before) in enumerate(kept):
            places[row, : len(words)] = self._kinds[words] + 1
            for target, source in zip(targets, sources, strict=True):
                target[row, : len(words)] = source[words]
            heads = targets[0][row, : len(words)]
            heads += np.where(heads > 0, before[:, None], 0)
        unique, inverse = np.unique(places[places > 0], return_inverse=True)
        places[places > 0] = inverse + 1
        rows = torch.from_numpy(self._rows[unique - 1])
        made = [torch.from_numpy(target) for target in targets]
        return Batch(rows, torch.from_numpy(places), made[0], made[1] / ALL, made[2], made[3] / ALL)


def single(corpus: Corpus) -> list[list[list[int]]]:
    """Batches of texts as they stand, of like lengths."""
    return [[[i] for i in batch] for batch in plan(corpus.lengths.tolist(), CELLS)]


def joined(
    corpus: Corpus, orders: Sequence[Sequence[int]], rng: random.Random
) -> list[list[list[int]]]:
    """Batches, in random order, of texts that join one to four neighbours of an order."""
    lengths = corpus.lengths.tolist()
    texts: list[list[int]] = []
    for order in orders:
        start = 0
        while start < len(order):
            wanted = list(order[start : start + rng.choice(SENTENCES_A_DOCUMENT)])
            while len(wanted) > 1 and sum(lengths[i] for i in wanted) > LONGEST:
                wanted.pop()
            texts.append(wanted)
            start += len(wanted)
    rng.shuffle(texts)
    batches = plan([sum(lengths[i] for i in one) for one in texts], CELLS)
    rng.shuffle(batches)
    return [[texts[i] for i in batch] for batch in batches]


def both(one: Corpus, other: Corpus) -> Corpus:
    """The texts of one, then those of the other."""
    starts = np.concatenate([one.starts, one.starts[-1] + other.starts[1:]])
    rest = [
        np.concatenate([getattr(one, field.name), getattr(other, field.name)])
        for field in fields(one)[1:]
    ]
    return Corpus(starts, *rest)


def _first(values: Ints) -> npt.NDArray[np.int16]:
    """(N,) -> (N, CANDIDATES): the first of them, and 0; what is less than 0 becomes 0."""
    column = np.zeros((len(values), CANDIDATES), np.int16)
    column[:, 0] = values.clip(min=0)
    return column


def _starts(lengths: npt.ArrayLike) -> Ints:
    starts: Ints = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts
