"""Text -> tokens with character offsets and, on request, the dependency tree (spaCy)."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import spacy
from spacy.attrs import DEP, HEAD, NORM
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from heedful.text.arc_parser import CELLS, ArcParser, Each, Tree  # a pipeline may name it
from heedful.text.arrays import Ints
from heedful.text.batch import plan
from heedful.text.errors import ParserError
from heedful.text.tokenize import ATTRIBUTES, Spans, TextTokenizer, Tokens, adjoining, hashes

_PLACES: Ints = np.arange(1024)
_PLACES.flags.writeable = False
_RELATIONS: dict[int, str] = {}
"""Names of relations by their hash, which is the same in every vocabulary: a parser has about fifty."""


@dataclass(frozen=True)
class Parse:
    """A text's L tokens, none of them white space; `text[start:stop]` is the token, for any Unicode."""

    text: str
    tokens: tuple[str, ...]
    heads: Ints  # (L,) index of the governor; its own for a root, and for all without a tree
    deps: tuple[str, ...]  # (L,) UD relations; empty without a tree
    cut: bool  # whether later tokens were left out
    spans: Spans | None = None
    """(L,) `starts` and `stops`; None where each token adjoins the one before, or a blank stands between."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def starts(self) -> Sequence[int]:
        """(L,) character offsets. Most requests ask for none."""
        return self._spans[0]

    @property
    def stops(self) -> Sequence[int]:
        """(L,) character offsets."""
        return self._spans[1]

    @cached_property
    def _spans(self) -> Spans:
        return self.spans or adjoining(self.text, self.tokens)


class ParseJob(NamedTuple):
    """A text to tokenize up to `max_tokens`, with or without its tree."""

    text: str
    max_tokens: int
    tree: bool


class Parser:
    """A spaCy pipeline reduced to its tokenizer and its dependency parser."""

    def __init__(self, nlp: Language, name: str, fingerprint: str) -> None:
        self._nlp = nlp
        self._tokenizer = TextTokenizer(nlp.tokenizer, nlp.vocab, nlp.memory_zone)
        parser = nlp.get_pipe("parser") if nlp.pipe_names == ["parser"] else None
        self._trees = parser.trees if isinstance(parser, ArcParser) else self._piped
        if isinstance(parser, ArcParser):
            _only(ATTRIBUTES, nlp.vocab)
        self.name = name
        self.fingerprint = fingerprint

    @classmethod
    def load(cls, pipeline: str | Path) -> Self:
        """Load a pipeline from a folder (ours is `bundles/parser`) or by package name (`en_core_web_sm`).

        Raises ParserError where it cannot be loaded or has no parser.
        """
        try:
            nlp = spacy.load(pipeline)
        except (OSError, ValueError) as error:
            raise ParserError(
                f"cannot load the spaCy pipeline {str(pipeline)!r}: "
                "name a folder or an installed package with --parser, HEEDFUL_PARSER or parser="
            ) from error
        if "parser" not in nlp.pipe_names:
            raise ParserError(f"the spaCy pipeline {str(pipeline)!r} has no dependency parser")
        for pipe in nlp.pipe_names:
            if pipe not in ("tok2vec", "transformer", "parser"):
                nlp.remove_pipe(pipe)
        return cls(nlp, f"{nlp.meta['lang']}_{nlp.meta['name']}", fingerprint(nlp.path))

    def parse(self, jobs: Sequence[ParseJob], each: Each = map) -> list[Parse]:
        """One Parse per job, in order. A text without a token gives an empty one.

        `each` may run the arc parser in several threads.
        """
        if not any(job.tree for job in jobs):
            return list(map(self._flat, jobs))
        found = dict(chain.from_iterable(self.parts([jobs], each)))
        return [found[place] for place in range(len(jobs))]

    def parts(
        self, pieces: Iterable[Sequence[ParseJob]], each: Each = map, cells: int = CELLS
    ) -> Iterator[list[tuple[int, Parse]]]:
        """The parses of all jobs, each with its job's place, in parts as they are made.

        There is a part for each piece, which is tokenized at once and may have no parse yet, then one for each run of
        the arc parser, of at most `cells` words.
        """
        waiting: list[tuple[int, ParseJob, Tokens]] = []
        place = 0
        for jobs in pieces:
            done: list[tuple[int, Parse]] = []
            for job in jobs:
                if job.tree:
                    waiting.append((place, job, self._tokenizer.tokenize(job.text, job.max_tokens)))
                else:
                    done.append((place, self._flat(job)))
                place += 1
            yield done
        if waiting:
            for part in self._trees([tokens for _, _, tokens in waiting], each, cells):
                yield [(waiting[i][0], _parse_of(*waiting[i][1:], tree)) for i, tree in part]

    def _flat(self, job: ParseJob) -> Parse:
        """A parse without a tree."""
        tokens = self._tokenizer.tokenize(job.text, job.max_tokens)
        return _parse_of(job, tokens, (_no_heads(len(tokens)), ()))

    def _piped(
        self, texts: Sequence[Tokens], _: Each, words: int
    ) -> Iterator[list[tuple[int, Tree]]]:
        """The trees of spaCy's own parser, which runs in one thread, in parts of at most `words` words."""
        for group in plan([len(one) for one in texts], words):
            found = []
            with self._tokenizer.zone():
                docs = self._nlp.pipe([self._doc(texts[i]) for i in group])
                for i, doc in zip(group, docs, strict=True):
                    steps, names = doc.to_array([HEAD, DEP]).T  # steps to the governor
                    heads = steps.astype(np.int64) + np.arange(len(doc))
                    found.append((i, (heads, _names(doc.vocab, names.tolist()))))
            yield found

    def _doc(self, tokens: Tokens) -> Doc:
        """The tokens as spaCy's tokenizer gives them, with their norms."""
        forms: list[str] = []
        spaces: list[bool] = []
        for chunk in tokens.chunks:
            forms += chunk.forms
            spaces += [*[False] * (len(chunk.forms) - 1), True]
        doc = Doc(self._nlp.vocab, forms[: len(tokens)], spaces[: len(tokens)])
        norms: Any = hashes([tokens])[:, :1]  # spaCy types them as its own integers
        doc.from_array([NORM], norms)
        return doc


def _parse_of(job: ParseJob, tokens: Tokens, tree: Tree) -> Parse:
    return Parse(job.text, tokens.forms, *tree, tokens.cut, tokens.spans)


def fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of every file of the pipeline."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _only(attributes: Sequence[int], vocab: Any) -> None:
    """Compute no other attributes of new words: spaCy has twenty, in Python."""
    vocab.lex_attr_getters = {name: vocab.lex_attr_getters[name] for name in attributes}


def _names(vocab: Vocab, hashes: list[int]) -> tuple[str, ...]:
    """The relations of these hashes. spaCy's store of strings takes three times as long as a dictionary."""
    try:
        return tuple([_RELATIONS[name] for name in hashes])
    except KeyError:
        _RELATIONS.update((name, vocab.strings[name]) for name in hashes)
        return tuple([_RELATIONS[name] for name in hashes])


def _no_heads(length: int) -> Ints:
    """Each token as its own governor. Read-only."""
    return _PLACES[:length] if length <= len(_PLACES) else np.arange(length)
