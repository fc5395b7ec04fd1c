"""A request's texts as the model reads them, and its answer with counts and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from heedful.runtime.answers import Result, Timing, TokenizedText
from heedful.runtime.familiarity import unfamiliar
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.batch import Sentence
from heedful.text.parse import Parse

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A request's texts as the model reads them."""

    model: LoadedModel
    parses: Sequence[Parse]
    sentences: Sequence[Sentence]
    texts_per_row: int
    seconds: float

    def cut(self) -> list[int]:
        """The texts that are longer than the model reads."""
        return [row for row, parse in enumerate(self.parses) if parse.cut]

    def tokenized(self) -> list[TokenizedText]:
        vocab, composes = self.model.vocab, self.model.card.composed > 0
        found = []
        for parse, sentence in zip(self.parses, self.sentences, strict=True):
            known, ids = vocab.known(sentence), vocab.word_ids(sentence)
            found.append(TokenizedText(parse, ids, known, ~known & composes))
        return found

    def result(self, value: T, queue: float = 0.0, inference: float = 0.0) -> Result[T]:
        """The value with its counts and times, both in seconds."""
        cut = [parse.cut for parse in self.parses]
        step = self.texts_per_row
        known = [self.model.vocab.known(sentence) for sentence in self.sentences]
        strange = [
            unfamiliar(parse.text, one) for parse, one in zip(self.parses, known, strict=True)
        ]
        tokens = sum(map(len, self.sentences))
        return Result(
            value=value,
            card=self.model.card,
            timing=Timing(self.seconds, queue, inference),
            inputs=len(cut) // step,
            truncated=sum(any(cut[i : i + step]) for i in range(0, len(cut), step)),
            tokens=tokens,
            composed=tokens - sum(int(np.count_nonzero(one)) for one in known),
            unfamiliar=sum(any(strange[i : i + step]) for i in range(0, len(strange), step)),
        )
