"""The training data of the arc parser: words as rows of hashed tables, governors and relations with their shares.

In gold trees each word has one governor; in the teacher's (`tools.parser.soft_trees`) a few share it. A text of a batch
is one to four sentences, like a request.
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
from heedful.text.hashed_words import hashed_rows
from heedful.text.tokenize import ATTRIBUTES
from tools.batches import plan
from tools.parser.soft_trees import CANDIDATES, SoftTrees
from tools.parser.treebank import SENTENCES_A_DOCUMENT

ALL = 255
"""The share of a single governor."""
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
    head_shares: Bytes  # (N, CANDIDATES), of 255; all 0 for a word that is not learned from
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
        doc = nlp.make_doc(reference.text)
        if not len(doc) or any(token.is_space for token in doc):
            continue
        aligned, relations = Example(doc, reference).get_aligned_parse(projectivize=False)
        words.append(doc.to_array(COLUMNS))
        heads.append(
            [-1 if head is None else 0 if head == i else head + 1 for i, head in enumerate(aligned)]
        )
        names.append([number.get(relation or "", -1) for relation in relations])
    flat_heads, flat_names = (np.concatenate(column) for column in (heads, names))
    return Corpus(
        _starts([len(rows) for rows in words]),
        np.concatenate(words),
        _first(flat_heads),
        _first(ALL * (flat_heads >= 0)).astype(np.uint8),
        _first(flat_names).astype(np.uint8),
        _first(ALL * (flat_names >= 0)).astype(np.uint8),
    )


def silver(nlp: Language, parts: Sequence[SoftTrees]) -> Corpus:
    """The teacher's trees. Raises ValueError where `nlp` makes other tokens than the teacher read."""
    words = [nlp.make_doc(text).to_array(COLUMNS) for part in parts for text in part.texts]
    lengths = np.concatenate([part.lengths for part in parts])
    if not np.array_equal(lengths, [len(rows) for rows in words]):
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
        """A batch of texts, each of which joins texts of the corpus with these numbers."""
        joined, corpus = [], self.corpus
        for numbers in texts:
            spans = [np.arange(*corpus.starts[i : i + 2]) for i in numbers]
            lengths = [len(span) for span in spans]
            offsets = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
            joined.append((np.concatenate(spans), offsets))
        size = (len(texts), max(len(words) for words, _ in joined))
        places = np.zeros(size, np.int64)
        targets = [np.zeros((*size, CANDIDATES), np.int64) for _ in range(4)]
        sources = [getattr(corpus, field.name) for field in fields(corpus)[2:]]
        for row, (words, offsets) in enumerate(joined):
            places[row, : len(words)] = self._kinds[words] + 1
            for target, source in zip(targets, sources, strict=True):
                target[row, : len(words)] = source[words]
            heads = targets[0][row, : len(words)]
            heads += np.where(heads > 0, offsets[:, None], 0)
        unique, inverse = np.unique(places[places > 0], return_inverse=True)
        places[places > 0] = inverse + 1
        rows = torch.from_numpy(self._rows[unique - 1])
        tensors = [torch.from_numpy(array) for array in (places, *targets)]
        positions, governors, governor_shares, relations, relation_shares = tensors
        return Batch(
            rows, positions, governors, governor_shares / ALL, relations, relation_shares / ALL
        )


def single(corpus: Corpus) -> list[list[list[int]]]:
    """Batches of the corpus' texts, of similar lengths."""
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
            text = list(order[start : start + rng.choice(SENTENCES_A_DOCUMENT)])
            while len(text) > 1 and sum(lengths[i] for i in text) > LONGEST:
                text.pop()
            texts.append(text)
            start += len(text)
    rng.shuffle(texts)
    batches = plan([sum(lengths[i] for i in text) for text in texts], CELLS)
    rng.shuffle(batches)
    return [[texts[i] for i in batch] for batch in batches]


def concatenated(first: Corpus, second: Corpus) -> Corpus:
    """The texts of the first corpus, then those of the second."""
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    columns = [
        np.concatenate([getattr(first, field.name), getattr(second, field.name)])
        for field in fields(first)[1:]
    ]
    return Corpus(starts, *columns)


def _first(values: Ints) -> npt.NDArray[np.int16]:
    """(N,) -> (N, CANDIDATES): the values, negative ones as 0, in the first column, and 0 in the others."""
    column = np.zeros((len(values), CANDIDATES), np.int16)
    column[:, 0] = values.clip(min=0)
    return column


def _starts(lengths: npt.ArrayLike) -> Ints:
    starts: Ints = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts
