"""Text -> Parse: tokens with character offsets and, where asked for, the tree (spaCy)."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import spacy
from spacy.language import Language
from spacy.tokens import Doc

Ints = npt.NDArray[np.int64]

LONGEST_RUN = 500
"""Characters without white space read as one piece: spaCy's tokenizer is quadratic in them."""
WINDOW = 4096
"""Characters tokenized at first; a longer text is read on only while it may still fit."""
_TOO_LONG_A_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN + 1}}}")
_LAST_RUN = re.compile(r"\s\S*\Z")


class ParserError(Exception):
    """The spaCy pipeline cannot be used; the message names it and the remedy."""


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
        with self._nlp.memory_zone():  # else the vocabulary keeps every new word for good
            read = [self._tokenize(job) for job in jobs]
            trees = self._nlp.pipe(
                [doc for job, (doc, _) in zip(jobs, read, strict=True) if job.tree]
            )
            return [
                _to_arrays(job.text, next(trees) if job.tree else doc, tree=job.tree, cut=cut)
                for job, (doc, cut) in zip(jobs, read, strict=True)
            ]

    def _tokenize(self, job: ParseJob) -> tuple[Doc, bool]:
        """Tokens of the text's beginning, at most `max_tokens` that are not white space."""
        text = job.text
        run = _TOO_LONG_A_RUN.search(text)
        if run:
            text = text[: run.start() + LONGEST_RUN]
        width = WINDOW
        while True:
            prefix = text if len(text) <= width else _LAST_RUN.sub("", text[:width])
            doc = self._nlp.make_doc(prefix)
            words = [token.i for token in doc if not token.is_space]
            if len(words) > job.max_tokens:
                return doc[: words[job.max_tokens]].as_doc(), True
            if len(prefix) == len(text):
                return doc, run is not None
            width *= 4


def fingerprint(folder: Path) -> str:
    """SHA-256 over every file of the pipeline: its names and its bytes."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _to_arrays(text: str, doc: Doc, *, tree: bool, cut: bool) -> Parse:
    """Leave white space out and count the heads anew."""
    words = [token for token in doc if not token.is_space]
    position = {token.i: i for i, token in enumerate(words)}

    def governor(index: int) -> int:
        """A token that hangs under white space hangs under what that hangs under, or is a root."""
        token = words[index].head
        while token.is_space and token.head.i != token.i:
            token = token.head
        return position.get(token.i, index)

    return Parse(
        text=text,
        tokens=tuple(token.text for token in words),
        starts=_ints(token.idx for token in words),
        stops=_ints(token.idx + len(token) for token in words),
        heads=_ints(map(governor, range(len(words)))) if tree else np.arange(len(words)),
        deps=tuple(token.dep_ for token in words) if tree else (),
        cut=cut,
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
