"""Text -> Parse: tokens with character offsets and, where asked for, the tree (spaCy)."""

import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import spacy
from spacy.language import Language
from spacy.tokens import Doc

import text.head_scorer  # noqa: F401  # a pipeline may name this component
from text.errors import ParserError

Ints = npt.NDArray[np.int64]

LONGEST_RUN = 500
"""Characters without white space read as one piece: spaCy's tokenizer is quadratic in them."""
WINDOW = 1024
"""Characters tokenized at first; a longer text is read on only while it may still fit."""
_RUN = re.compile(r"\S+")


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
            read = [self._read(job) for job in jobs]
            trees = self._nlp.pipe(
                [doc for job, (doc, *_) in zip(jobs, read, strict=True) if job.tree]
            )
            return [
                _to_parse(job, next(trees) if job.tree else doc, runs, cut)
                for job, (doc, runs, cut) in zip(jobs, read, strict=True)
            ]

    def _read(self, job: ParseJob) -> tuple[Doc, "_Runs", bool]:
        """At most `max_tokens` tokens of the text's beginning, and whether that is not all of it.

        White space of any length becomes one blank, which spaCy makes no token of, as in the
        treebanks that parsers are trained on. A run between white space holds a token or more, so
        that no text is looked at further than the run behind `max_tokens` of them.
        """
        found = list(islice(_RUN.finditer(job.text), job.max_tokens + 1))
        too_long = [i for i, run in enumerate(found) if run.end() - run.start() > LONGEST_RUN]
        found = found[: too_long[0] + 1] if too_long else found
        runs = _Runs([run.group()[:LONGEST_RUN] for run in found], [run.start() for run in found])
        width = WINDOW
        while True:
            beginning = runs.within(width)
            doc = self._nlp.make_doc(" ".join(beginning))
            if len(doc) > job.max_tokens:
                return doc[: job.max_tokens].as_doc(), runs, True
            if len(beginning) == len(runs.texts):
                return doc, runs, bool(too_long)
            width *= 4


class _Runs:
    """What stands between white space, and where: in the text, and joined by single blanks."""

    def __init__(self, texts: list[str], starts: list[int]) -> None:
        self.texts = texts
        self._joined = np.cumsum([0, *(len(text) + 1 for text in texts)])
        self._shifts = np.array(starts, np.int64) - self._joined[:-1]

    def within(self, width: int) -> list[str]:
        """The first runs, one at least, that fit into `width` characters once joined."""
        return self.texts[: max(1, int(np.searchsorted(self._joined[1:], width)))]

    def offsets(self, joined: Ints) -> Ints:
        """Offsets in the text of offsets in the joined runs."""
        run = np.searchsorted(self._joined, joined, side="right") - 1
        offsets: Ints = joined + self._shifts[run]
        return offsets


def fingerprint(folder: Path) -> str:
    """SHA-256 over every file of the pipeline: its names and its bytes."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _to_parse(job: ParseJob, doc: Doc, runs: _Runs, cut: bool) -> Parse:
    starts = runs.offsets(_ints(token.idx for token in doc))
    return Parse(
        text=job.text,
        tokens=tuple(token.text for token in doc),
        starts=starts,
        stops=starts + _ints(map(len, doc)),
        heads=_ints(token.head.i for token in doc) if job.tree else np.arange(len(doc)),
        deps=tuple(token.dep_ for token in doc) if job.tree else (),
        cut=cut,
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
