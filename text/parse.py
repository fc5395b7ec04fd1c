"""Text -> Parse: tokens with character offsets and, where asked for, the tree (spaCy)."""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import text.lean  # before spaCy  # isort: skip

import numpy as np
import numpy.typing as npt
import spacy
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.vocab import Vocab

import text.head_scorer  # noqa: F401  # a pipeline may name this component
from text.errors import ParserError
from text.reading import Reader, Reading

Ints = npt.NDArray[np.int64]

_OWN: Ints = np.arange(1024)
_OWN.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Parse:
    """A text's L tokens. White space is none; `text[start:stop]` is the token, for any Unicode."""

    text: str
    tokens: tuple[str, ...]
    starts: Ints  # (L,) character offsets
    stops: Ints  # (L,)
    heads: Ints  # (L,) index of the governor, itself for a root and wherever no tree was asked for
    deps: tuple[str, ...]  # (L,) UD relations; empty where no tree was asked for
    cut: bool  # whether tokens behind the last one were left out

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class ParseJob:
    """What is asked of a parser: cut `text` behind `max_tokens`, with or without its tree."""

    text: str
    max_tokens: int
    tree: bool


class Parser:
    """A spaCy pipeline reduced to its tokenizer and its dependency parser."""

    def __init__(self, nlp: Language, name: str, fingerprint: str) -> None:
        self._nlp = nlp
        nlp.max_length = sys.maxsize  # spaCy counts characters, `parse` cuts behind tokens
        self._reader = Reader(nlp.make_doc, nlp.vocab, nlp.memory_zone)
        self.name = name
        self.fingerprint = fingerprint

    @classmethod
    def load(cls, pipeline: str | Path) -> Self:
        """Load a pipeline by folder (ours: `bundles/parser`) or by package name (`en_core_web_sm`).

        Raises ParserError where there is none, or where it has no parser.
        """
        try:
            nlp = spacy.load(pipeline)
        except (OSError, ValueError) as error:
            raise ParserError(
                f"cannot load the spaCy pipeline {str(pipeline)!r}: "
                "name a folder or an installed package"
            ) from error
        if "parser" not in nlp.pipe_names:
            raise ParserError(f"the spaCy pipeline {str(pipeline)!r} has no dependency parser")
        for pipe in nlp.pipe_names:
            if pipe not in ("tok2vec", "transformer", "parser"):
                nlp.remove_pipe(pipe)
        return cls(nlp, f"{nlp.meta['lang']}_{nlp.meta['name']}", fingerprint(nlp.path))

    def parse(self, jobs: Sequence[ParseJob]) -> list[Parse]:
        """One Parse a job, in order. A text that holds no token gives an empty one."""
        with self._reader.zone():
            read = [self._reader.read(job.text, job.max_tokens) for job in jobs]
            trees = self._nlp.pipe(
                [reading.doc for job, reading in zip(jobs, read, strict=True) if job.tree]
            )
            return [
                _to_parse(job, reading, next(trees) if job.tree else None)
                for job, reading in zip(jobs, read, strict=True)
            ]

    def tokenizer(self) -> bytes:
        """What `Tokens` is made of."""
        tokenizer: Any = self._nlp.tokenizer  # spaCy types it as any function of a text
        content: bytes = tokenizer.to_bytes(exclude=["vocab"])
        return content


class Tokens:
    """The tokenizer of a Parser alone: the same tokens, and no tree."""

    def __init__(self, content: bytes) -> None:
        """`content` is what `Parser.tokenizer` gave."""
        vocab = Vocab()  # without a language's attributes of words, which nothing here asks for
        tokenizer = Tokenizer(vocab).from_bytes(content)
        self._reader = Reader(tokenizer, vocab, vocab.memory_zone)

    def parse(self, jobs: Sequence[ParseJob]) -> list[Parse]:
        """One Parse a job, in order: as Parser's, of jobs without a tree."""
        with self._reader.zone():
            return [_to_parse(job, self._reader.read(job.text, job.max_tokens)) for job in jobs]


def fingerprint(folder: Path) -> str:
    """SHA-256 over every file of the pipeline: its names and its bytes."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _to_parse(job: ParseJob, reading: Reading, tree: Doc | None = None) -> Parse:
    spans = zip(reading.starts.tolist(), reading.stops.tolist(), strict=True)
    return Parse(
        text=job.text,
        tokens=tuple([job.text[start:stop] for start, stop in spans]),
        starts=reading.starts,
        stops=reading.stops,
        heads=_ints(token.head.i for token in tree) if tree else _no_heads(len(reading.starts)),
        deps=() if tree is None else tuple([token.dep_ for token in tree]),
        cut=reading.cut,
    )


def _no_heads(length: int) -> Ints:
    """Each token its own governor. To be read only."""
    return _OWN[:length] if length <= len(_OWN) else np.arange(length)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
