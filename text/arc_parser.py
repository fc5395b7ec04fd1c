"""The dependency parser as a component of a spaCy pipeline: an int8 ONNX graph scores arcs, of which it sets the best
tree.

It replaces spaCy's transition parser, under the name `parser`. Its folder:

    graph.onnx   word vectors (B, L, D) in uint8 -> heads and relations (B, L), and their scores (tools.parser.graph)
    words.npz    the tables of the word vectors (text.hashed_words), and the last layer of the relations
    config.json  names of the relations, the rotary frequencies in radians a word (`speeds`)

A text has a tree, and a root, for each sentence. A text's trees do not depend on the other texts of a call.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, Self
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from spacy.attrs import DEP, HEAD, IS_SPACE, POS
from spacy.language import Language
from spacy.symbols import SPACE
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab
from srsly import msgpack_dumps, msgpack_loads

from heedful.text.arborescence import best_heads
from heedful.text.arrays import Bytes, Doubles, Floats, Ints
from heedful.text.batch import run_in_batches
from heedful.text.errors import GraphError
from heedful.text.forks import ForkSafe
from heedful.text.hashed_words import ZERO, WordVectors
from heedful.text.tokenize import (
    ATTRIBUTES,
    WORD_BYTES,
    WORDS_READ,
    Chunk,
    Tokens,
    hashes,
    split_words,
)

GRAPH, WORDS, CONFIG = FILES = ("graph.onnx", "words.npz", "config.json")
MAX_WORDS = 20_000
"""Words whose vectors are cached, of D bytes each. When there are more, the cache is cleared."""
MASKED_SCORE = -1e4
"""Score of an impossible governor, as in tools.parser.model."""
ROOT, NO_WORD = "ROOT", "dep"
"""Relations of a root, and of a token that is no word."""
Tree = tuple[Ints, tuple[str, ...]]
"""Each word's governor, which is itself for a root, and its relation."""
Feeds = dict[str, npt.NDArray[Any]]


class VectorTable:
    """A cache of words' vectors. A word is its ATTRIBUTES: "ca" of "can't" is not the word "ca"."""

    def __init__(self, vectors: WordVectors, limit: int = MAX_WORDS) -> None:
        self._vectors, self._limit = vectors, limit
        self._rows = np.full((limit + 1, vectors.width), ZERO, np.uint8)
        self._places: dict[bytes, int] = {}

    def __call__(self, texts: Sequence[Tokens]) -> tuple[Bytes, Ints]:
        """A table, whose first row belongs to no word, and the row (N,) of each word of `texts`."""
        keys = [word for tokens in texts for word in tokens.words]
        places: list[int | None] = list(map(self._places.get, keys))
        if None in places:
            new = list(dict.fromkeys(key for key in keys if key not in self._places))
            if len(self._places) + len(new) > self._limit:
                self._places.clear()
                new = list(dict.fromkeys(keys))
            if len(new) > self._limit:  # a text of very many words
                rows = self._vectors(hashes(keys))
                return np.concatenate([self._rows[:1], rows]), np.arange(1, len(rows) + 1)
            first = len(self._places) + 1
            self._rows[first : first + len(new)] = self._vectors(hashes(new))
            self._places.update(zip(new, range(first, first + len(new)), strict=True))
            places = list(map(self._places.get, keys))
        return self._rows, np.array(places)


class ArcParser(ForkSafe):
    """Empty until `from_disk` reads its folder. Only one thread at a time may use it. A `text.batch.Runner`."""

    stage: Literal["parse"] = "parse"
    name = "the parser"
    budget = 1024
    """Words of a run of the graph, padding included: they take 5 ms."""
    overhead = 256
    """Fixed cost of a run, in words: 150 µs in ONNX Runtime, and Python's part for a batch."""

    def __init__(self, vocab: Vocab, threads: int) -> None:
        self._vocab, self._threads = vocab, threads
        super().__init__()
        self._files: dict[str, bytes] = {}
        self.labels: tuple[str, ...] = ()

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int) -> Iterator[Doc]:
        for docs in minibatch(stream, batch_size):
            self._annotate(docs)
            yield from docs

    def __reduce__(self) -> tuple[Any, ...]:
        return ArcParser, (self._vocab, self._threads), self._files or None

    def to_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002  # spaCy gives it
        path.mkdir(exist_ok=True)
        for name, content in self._files.items():
            (path / name).write_bytes(content)

    def from_disk(self, path: Path, *, exclude: Iterable[str] = ()) -> Self:  # noqa: ARG002
        """Raises OSError or ValueError, as spaCy's components do, for missing or wrong files."""
        return self._load({name: (path / name).read_bytes() for name in FILES})

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:  # noqa: ARG002
        content: bytes = msgpack_dumps(self._files)
        return content

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> Self:  # noqa: ARG002
        """Raises ValueError for other bytes."""
        return self._load(msgpack_loads(content))

    def _load(self, files: dict[str, bytes]) -> Self:
        self._files = files
        config = json.loads(self._files[CONFIG])
        try:
            self.labels = tuple(config["labels"])
            self._speeds = np.array(config["speeds"])
            self._root = self.labels.index(ROOT)
            with np.load(BytesIO(self._files[WORDS])) as archive:
                arrays = {name: archive[name] for name in archive.files}
            self._last = arrays["relation_matrix"], arrays["relation_bias"]
            self._words = VectorTable(WordVectors(arrays))
        except (KeyError, EOFError, BadZipFile) as error:
            raise ValueError(f"the arc parser's files are incomplete: {error}") from error
        for label in (*self.labels, NO_WORD):
            self._vocab.strings.add(label)
        self._names = np.array(self.labels, object)
        self._positions = position_feeds(64, self._speeds)
        from heedful.text.graph import open_session  # 60 MB, only for pipelines with this parser

        try:
            self._graph = open_session(self._files[GRAPH], threads=self._threads)
        except GraphError as error:
            raise ValueError("the arc parser's graph cannot be opened") from error
        return self

    __setstate__ = _load

    def costs(self, texts: Sequence[Tokens]) -> list[int]:
        """Each text's cost in a batch whose longest it is, in words."""
        return [len(tokens.forms) for tokens in texts]

    def prepare(self, texts: Sequence[Tokens]) -> tuple[list[int], Feeds]:
        """The lengths and the graph's feeds of texts of at least one word each."""
        lengths = self.costs(texts)
        longest = max(lengths)
        inside = np.arange(longest) < np.array(lengths)[:, None]  # (B, L)
        places = np.zeros(inside.shape, np.int64)
        with self._lock:
            table, rows = self._words(texts)
            places[inside] = rows
            words = table[places]
            if longest > len(self._positions["itself"]):
                self._positions = position_feeds(2 * longest, self._speeds)
            positions = self._positions
        return lengths, {
            "words": words,
            "inside": inside[..., None],
            "outside": np.where(inside, np.float32(0), np.float32(MASKED_SCORE))[:, None],
            "itself": positions["itself"][:longest, :longest],
            "cos": positions["cos"][:longest],
            "sin": positions["sin"][:longest],
            "first": np.arange(len(texts))[:, None] * longest,
        }

    def run(self, prepared: tuple[list[int], Feeds]) -> list[Tree]:
        """The trees of a batch, by a run of the graph."""
        lengths, feeds = prepared
        heads, relations, scores, dependents, governors = self._graph.run(None, feeds)
        best = heads * feeds["inside"][..., 0]  # (B, L), 0 is the root
        if len(rows := cyclic(best)):
            with_cycles = best[rows]
            best[rows] = best_heads(scores[rows], feeds["inside"][rows].sum((1, 2)))
            changed, word = np.nonzero(best[rows] != with_cycles)
            row = rows[changed]
            pairs = dependents[row, word] + governors[row, best[row, word] - 1]
            relations[row, word] = self._relations(pairs)
        has_governor = best > 0
        names = self._names[np.where(has_governor, relations, self._root)].tolist()
        best = np.where(has_governor, best - 1, np.arange(best.shape[1]))
        # ONNX Runtime's integers are C's long long, which orjson does not know.
        return [
            (row[:length].astype(np.int64), tuple(row_names[:length]))
            for length, row, row_names in zip(lengths, best, names, strict=True)
        ]

    def _annotate(self, docs: Sequence[Doc]) -> None:
        """Set heads and relations."""
        docs_with_words = [(doc, *words_of(doc)) for doc in docs if len(doc)]
        texts = [Tokens.of([chunk]) for _, _, chunk in docs_with_words if chunk.words]
        trees = iter(run_in_batches(self, texts))
        for doc, places, chunk in docs_with_words:
            self._set(doc, places, next(trees) if chunk.words else (np.zeros(0, np.int64), ()))

    def _set(self, doc: Doc, places: Ints, tree: Tree) -> None:
        """Set the tree of the words at these places. A token that is no word depends on the word before it."""
        heads, relations = tree
        tokens = np.arange(len(doc))
        last_word = np.searchsorted(places, tokens, side="right") - 1
        governors = places[np.maximum(last_word, 0)] if len(places) else tokens
        governors[places] = places[heads]
        strings = self._vocab.strings
        names = np.full(len(doc), strings[NO_WORD if len(places) else ROOT], np.uint64)
        names[places] = [strings[name] for name in relations]
        columns: Any = np.stack([(governors - tokens).astype(np.uint64), names], -1)
        doc.from_array([HEAD, DEP], columns)  # spaCy types them as its own integers

    def _relations(self, pairs: Floats) -> Ints:
        """Relations (n,) of words to governors, from the sums (n, E) of their two parts of the last layer."""
        matrix, bias = self._last
        best: Ints = (np.maximum(pairs, 0) @ matrix + bias).argmax(axis=-1)
        return best


def words_of(doc: Doc) -> tuple[Ints, Chunk]:
    """The places of a document's words, which are not white space, and the words."""
    columns = doc.to_array([IS_SPACE, POS, *ATTRIBUTES])
    places = np.flatnonzero((columns[:, 0] == 0) & (columns[:, 1] != SPACE))
    content: bytes = doc.user_data.get(WORDS_READ, b"")
    if len(content) != WORD_BYTES * len(places):  # another tokenizer's document, or a changed one
        content = columns[places, 2:].tobytes()
    words = split_words(content)
    return places, Chunk(("",) * len(words), words)


@Language.factory("arc_parser", default_config={"threads": 1})
def make_arc_parser(nlp: Language, name: str, threads: int) -> ArcParser:  # noqa: ARG001
    """`threads` is the number that an operator may use."""
    return ArcParser(nlp.vocab, threads)


def position_feeds(length: int, speeds: Doubles) -> Feeds:
    """The graph's feeds for `length` positions.

    They are cosines and sines of angles, for the pairs of dependents and of governors, and a matrix (L, L) with
    MASKED_SCORE on the diagonal: no word governs itself.
    """
    angles = np.tile(np.arange(length)[:, None] * speeds, (1, 4))
    return {
        "itself": np.diag(np.full(length, MASKED_SCORE, np.float32)),
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }


def cyclic(heads: Ints) -> Ints:
    """Governors (B, L), 0 for the root -> the indices of the sentences with a cycle."""
    B, L = heads.shape
    roots = np.arange(B)[:, None] * (1 + L)  # the nodes of all sentences are numbered together
    nodes = np.hstack([roots, heads + roots])
    ancestors = nodes.ravel()
    for _ in range(L.bit_length()):  # pointer doubling: 2^k steps up after k rounds
        ancestors = ancestors[ancestors]
    return np.flatnonzero((ancestors.reshape(nodes.shape) != roots).any(axis=1))
