"""A request's texts as the model reads them, and its answer with counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from heedful.runtime.answers import Result, TokenizedText, Trust
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.arrays import Doubles, Floats
from heedful.text.batch import Sentence
from heedful.text.language import is_out_of_domain
from heedful.text.parse import Parse

T = TypeVar("T")


@dataclass(slots=True)
class Parsed:
    """A request's texts, parsed, with their words looked up."""

    model: LoadedModel
    parses: Sequence[Parse]
    sentences: Sequence[Sentence]
    texts_per_row: int

    def first(self, count: int) -> Self:
        return replace(self, parses=self.parses[:count], sentences=self.sentences[:count])

    def tokenized(self) -> list[TokenizedText]:
        """The tokens of each text, with their ids and whether the vocabulary lists them."""
        vocab, composes = self.model.vocab, self.model.card.composed > 0
        texts = []
        for parse, sentence in zip(self.parses, self.sentences, strict=True):
            known, ids = vocab.known(sentence), vocab.word_ids(sentence)
            texts.append(TokenizedText(parse, ids, known, ~known & composes))
        return texts

    def trust(self, vectors: Floats, probabilities: Doubles | None) -> list[Trust]:
        """How far each row's answer can be trusted, from vectors (M, D) and probabilities (N, C)."""
        step, vocab = self.texts_per_row, self.model.vocab
        shares: Doubles | None = None
        if self.model.typical:
            shares = self.model.typical.share(vectors).reshape(-1, step).min(axis=1)
        rows = []
        for i in range(len(self.sentences) // step):
            sentences = self.sentences[i * step : (i + 1) * step]
            known = [vocab.known(sentence) for sentence in sentences]
            rows.append(
                Trust(
                    None if probabilities is None else float(probabilities[i].max()),
                    1.0 - float(np.concatenate(known).mean()),
                    None if shares is None else float(shares[i]),
                )
            )
        return rows

    def result(self, value: T) -> Result[T]:
        """The value with its counts."""
        step = self.texts_per_row
        unlisted = list(map(self.model.vocab.unlisted, self.sentences))
        cut = [parse.cut for parse in self.parses]
        out_of_domain = [
            is_out_of_domain(parse.text, parse.tokens, count)
            for parse, count in zip(self.parses, unlisted, strict=True)
        ]
        return Result(
            value=value,
            card=self.model.card,
            inputs=len(unlisted) // step,
            truncated=sum(map(any, zip(*[iter(cut)] * step, strict=True))),
            tokens=sum([len(parse.tokens) for parse in self.parses]),
            unlisted=sum(unlisted),
            out_of_domain=sum(map(any, zip(*[iter(out_of_domain)] * step, strict=True))),
        )
