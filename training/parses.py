"""Texts -> tokens and governors, parsed in several processes and cached."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.progress import track

from heedful.files.atomic import write_arrays
from heedful.text.arrays import Ints
from heedful.text.parse import Parser
from heedful.text.pieces import Lexicon
from heedful.text.plain import plain_word
from heedful.text.vocab import Vocab
from heedful.training.data import Framing, Rows, Spelling

CHUNK = 512
"""Texts per task of a process that parses."""
PARSE_VERSION = 4
"""Version of the results of `text.parse`: cached parses of another version are not used."""

Arrays = Mapping[str, npt.NDArray[Any]]
TokensAndHeads = tuple[tuple[str, ...], list[int]]
"""The tokens and heads of a text."""


def cached(
    folder: Path, key: Iterable[bytes], make: Callable[[], Arrays], *, prefix: str = ""
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of `make`, from the cache if it was called with this `key` before; the key's parts are hashed in turn.

    An interrupted call leaves nothing. Raises OSError where the disk is full.
    """
    digest = hashlib.sha256()
    for part in key:
        digest.update(part)
    file = folder / f"{prefix}{digest.hexdigest()[:24]}.npz"
    if not file.exists():
        write_arrays(file, **make())
    with np.load(file) as archive:
        return dict(archive)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Tokens and heads of N distinct texts, concatenated; text i is `bounds[i]:bounds[i + 1]`."""

    index: dict[str, int]  # text -> i
    tokens: list[str]
    heads: npt.NDArray[np.int16]
    bounds: Ints  # (N + 1,)

    def rows(self, vocab: Lexicon) -> Rows:
        """The texts as ids, without texts of more pieces than the model reads."""
        if isinstance(vocab, Vocab):
            ids = vocab.ids(self.tokens)
            spelling = Spelling.number(self.tokens, ids, vocab) if vocab.composed else None
            return Rows(self.index, ids, self.heads, self.bounds, spelling=spelling)
        ids, counts = vocab.split(self.tokens)
        stops = np.concatenate([[0], np.cumsum(counts)])[self.bounds]
        sizes = np.diff(stops) + 2  # with [CLS] and [SEP]
        index = {text: i for text, i in self.index.items() if sizes[i] <= vocab.limit}
        return Rows(index, ids, self.heads, self.bounds, Framing(vocab, counts, stops))

    def sentences(self) -> list[list[str]]:
        """The plain lower-cased tokens of each distinct text."""
        spans = pairwise(self.bounds.tolist())
        words = [plain_word(token).lower() for token in self.tokens]
        return [words[start:stop] for start, stop in spans]

    def counts(self) -> Counter[str]:
        """Counts of the plain lower-cased tokens in the distinct texts."""
        return Counter(plain_word(token).lower() for token in self.tokens)


@cache
def _parser(pipeline: str | None) -> Parser:
    """One parser per process."""
    return Parser.load(pipeline)


def _parse_chunk(
    pipeline: str | None, max_tokens: int, tree: bool, texts: list[str]
) -> list[TokensAndHeads]:
    parses = _parser(pipeline).parse(texts, max_tokens, tree)
    return [(parse.tokens, parse.heads.tolist()) for parse in parses]


def parse(
    texts: Sequence[str],
    *,
    pipeline: str | None,
    fingerprint: str,
    max_tokens: int,
    tree: bool,
    cache_dir: Path,
) -> Parsed:
    """Tokenize (and parse, if `tree`) the distinct texts in processes.

    The result is cached under the parser's fingerprint and PARSE_VERSION.
    Texts without a token are left out; longer texts are cut to `max_tokens`.
    """
    distinct = list(dict.fromkeys(texts))
    settings = f"{fingerprint} {max_tokens} {tree} {PARSE_VERSION}\n".encode()
    key = chain([settings], (text.encode() + b"\0" for text in distinct))
    parse_chunk = partial(_parse_chunk, pipeline, max_tokens, tree)
    arrays = cached(cache_dir, key, lambda: _arrays(_parse(parse_chunk, distinct)))
    tokens, lengths = arrays["tokens"].tobytes().decode().split("\n"), arrays["lengths"]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = {text: i for i, text in enumerate(distinct) if lengths[i]}
    return Parsed(index, tokens, arrays["heads"], bounds)


def _parse(
    parse_chunk: Callable[[list[str]], list[TokensAndHeads]], texts: list[str]
) -> list[TokensAndHeads]:
    chunks = [texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)]
    if len(chunks) == 1:  # starting a process takes longer than parsing this
        return parse_chunk(texts)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        results = pool.map(parse_chunk, chunks)
        return [parse for chunk in track(results, "parsing", len(chunks)) for parse in chunk]


def _arrays(parsed: list[TokensAndHeads]) -> Arrays:
    """The parses as arrays to store; tokens are joined with line ends, which no token holds."""
    joined = "\n".join(token for tokens, _ in parsed for token in tokens).encode()
    return {
        "tokens": np.frombuffer(joined, np.uint8),
        "lengths": np.array([len(tokens) for tokens, _ in parsed], np.int64),
        "heads": np.array([head for _, heads in parsed for head in heads], np.int16),
    }
