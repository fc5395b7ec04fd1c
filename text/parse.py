"""Text -> tokens with character offsets and, on request, the dependency tree (spaCy)."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import spacy
from spacy.attrs import DEP, HEAD, NORM
from spacy.language import Language
from spacy.tokens import Doc

from heedful.text.arc_parser import ROOT, ArcParser, Tree, words_of  # a pipeline may name it
from heedful.text.arrays import Ints
from heedful.text.batch import Runner, run_in_batches
from heedful.text.errors import ParserError
from heedful.text.forks import ForkSafe
from heedful.text.kinds import ENGLISH
from heedful.text.structure import without
from heedful.text.tokenize import ATTRIBUTES, NAME, Spans, TextTokenizer, Tokens, adjoining, hashes

CONFIG = "config.cfg"
"""A pipeline's configuration."""


@dataclass
class Parse:
    """A text's L tokens without white space; `text[start:stop]` is the token, for any Unicode."""

    text: str
    tokens: tuple[str, ...]
    heads: Ints
    """(L,) index of the governor; the token's index for a root, and for all without a tree"""
    deps: tuple[str, ...]  # (L,) UD relations; empty without a tree
    cut: bool  # whether later tokens were left out
    spans: Spans | None = None
    """(L,) `starts` and `stops`; None where tokens adjoin, or are separated by a blank."""

    @classmethod
    def of(cls, doc: Doc) -> Self:
        """A document's words and its tree."""
        starts = [token.idx for token in doc]
        spans = starts, [start + len(token) for start, token in zip(starts, doc, strict=True)]
        parse = cls(doc.text, tuple([token.text for token in doc]), *tree_of(doc), False, spans)
        return parse.without(np.setdiff1d(np.arange(len(doc)), words_of(doc)[0]))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def starts(self) -> Sequence[int]:
        """(L,) character offsets, computed on demand: most requests need none."""
        return self._spans[0]

    @property
    def stops(self) -> Sequence[int]:
        """(L,) character offsets."""
        return self._spans[1]

    @cached_property
    def _spans(self) -> Spans:
        return self.spans or adjoining(self.text, self.tokens)

    def without(self, removed: Sequence[int] | Ints) -> Self:
        """The parse without these tokens: their dependents depend on the nearest remaining ancestor."""
        remains = np.ones(len(self), bool)
        remains[list(removed)] = False
        mask = remains.tolist()
        return replace(
            self,
            tokens=tuple(compress(self.tokens, mask)),
            heads=without(self.heads, remains),
            deps=tuple(compress(self.deps, mask)),
            spans=(tuple(compress(self.starts, mask)), tuple(compress(self.stops, mask))),
        )

    def first(self, count: int) -> Self:
        """The first `count` tokens, marked as cut; the parse itself if it has no more."""
        if count >= len(self):
            return self
        return replace(self.without(range(count, len(self))), cut=True)


class Parser:
    """A spaCy pipeline reduced to its tokenizer and its dependency parser. Threads may share it."""

    def __init__(self, nlp: Language, name: str, fingerprint: str) -> None:
        self.nlp = nlp
        tokenizer: Any = nlp.tokenizer
        if not isinstance(tokenizer, TextTokenizer):  # a pipeline that is not Heedful's
            tokenizer = nlp.tokenizer = TextTokenizer(tokenizer, nlp.vocab)
        self.tokenizer: TextTokenizer = tokenizer
        parser = nlp.get_pipe("parser") if nlp.pipe_names == ["parser"] else None
        self.trees: Runner[Tree] | None = None
        """The parser, as a runner; None without one."""
        if isinstance(parser, ArcParser):
            self.trees = parser
        elif nlp.pipe_names:
            self.trees = PipelineTrees(nlp, self.tokenizer)
        if parser is self.trees:  # spaCy would compute twenty attributes of new words, in Python
            vocab: Any = nlp.vocab
            vocab.lex_attr_getters = {name: vocab.lex_attr_getters[name] for name in ATTRIBUTES}
        self.name = name
        self.fingerprint = fingerprint

    @classmethod
    def load(cls, pipeline: str | Path | None) -> Self:
        """Load a pipeline from a folder (ours is `bundles/parser`) or by package name (`en_core_web_sm`).

        None is a pipeline of English words without trees. Raises ParserError where the pipeline cannot be loaded or has
        no parser.
        """
        if pipeline is None:
            no_files = hashlib.sha256().hexdigest()
            tokenizer_only = {"nlp": {"tokenizer": {"@tokenizers": NAME}}}
            return cls(spacy.blank("en", config=tokenizer_only), ENGLISH, no_files)
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

    def parse(self, texts: Sequence[str], max_tokens: int, tree: bool) -> list[Parse]:
        """The first `max_tokens` tokens of each text, in order, with or without their tree. A text may have none."""
        read = [self.tokenizer.tokenize(text, max_tokens) for text in texts]
        trees: Sequence[Tree] = ()
        if tree and self.trees:
            trees = run_in_batches(self.trees, [tokens for tokens in read if tokens.forms])
        return parses_of(texts, read, trees, tree)


class PipelineTrees(ForkSafe):
    """The trees of another parser than Heedful's, in one thread. A `text.batch.Runner`."""

    stage: Literal["parse"] = "parse"
    name = "the parser"
    budget, overhead = 1024, 64

    def __init__(self, nlp: Language, tokenizer: TextTokenizer) -> None:
        self._nlp, self._tokenizer = nlp, tokenizer
        super().__init__()

    def costs(self, texts: Sequence[Tokens]) -> list[int]:
        """Each text's cost in a batch whose longest it is, in words."""
        return [len(tokens.forms) for tokens in texts]

    def prepare(self, texts: Sequence[Tokens]) -> list[Tree]:
        """The trees of texts of at least one word each."""
        with self._lock, self._tokenizer.zone():
            return list(map(tree_of, self._nlp.pipe(map(self._doc, texts))))

    def run(self, trees: list[Tree]) -> list[Tree]:
        """The trees, which `prepare` has computed: only one thread at a time may use spaCy's parsers."""
        return trees

    def _doc(self, tokens: Tokens) -> Doc:
        """A document of the tokens with their norms."""
        forms: list[str] = []
        spaces: list[bool] = []
        for chunk in tokens.chunks:
            forms += chunk.forms
            spaces += [*[False] * (len(chunk.forms) - 1), True]
        doc = Doc(self._nlp.vocab, forms[: len(tokens)], spaces[: len(tokens)])
        norms: Any = hashes(tokens.words)[:, :1]  # spaCy types them as its own integers
        doc.from_array([NORM], norms)
        return doc


def tree_of(doc: Doc) -> Tree:
    """The tree of all tokens of a document."""
    steps, names = doc.to_array([HEAD, DEP]).T  # steps to the governor
    heads = steps.astype(np.int64) + np.arange(len(doc))
    return heads, tuple([doc.vocab.strings[name] for name in names.tolist()])


def parses_of(
    texts: Sequence[str], read: Sequence[Tokens], trees: Iterable[Tree], tree: bool
) -> list[Parse]:
    """The parses of texts from their tokens and the trees of those with a token; without trees, tokens are roots."""
    remaining = iter(trees)
    parses = []
    for text, tokens in zip(texts, read, strict=True):
        count = len(tokens.forms)
        flat = np.arange(count), (ROOT,) * count if tree else ()
        heads, relations = next(remaining, flat) if count else flat
        parses.append(Parse(text, tokens.forms, heads, relations, tokens.cut, tokens.spans))
    return parses


def fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of the pipeline's files.

    Pipelines with spaCy's tokenizer and with `TextTokenizer` are the same: `Parser` replaces the former by the latter.
    """
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
        content = file.read_bytes()
        if file.name == CONFIG:
            content = content.replace(NAME.encode(), b"spacy.Tokenizer.v1")
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()
