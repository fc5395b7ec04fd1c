"""A request's texts as the model reads them, and its answer with counts and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from heedful.runtime.answers import Result, Timing, TokenizedText, Trust
from heedful.runtime.familiarity import unfamiliar
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.arrays import Doubles, Floats
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

    def trust(self, vectors: Floats, probabilities: Doubles | None) -> list[Trust]:
        """How far each row's answer can be trusted, from vectors (M, D) and probabilities (N, C)."""
        step, vocab = self.texts_per_row, self.model.vocab
        shares = self._shares(vectors)
        found = []
        for i in range(len(self.sentences) // step):
            known = [vocab.known(one) for one in self.sentences[i * step : (i + 1) * step]]
            found.append(
                Trust(
                    None if probabilities is None else float(probabilities[i].max()),
                    1.0 - float(np.concatenate(known).mean()),
                    None if shares is None else float(shares[i]),
                )
            )
        return found

    def _shares(self, vectors: Floats) -> Doubles | None:
        """(N,) share of training sentences that lie as far out as each row's farthest text."""
        if self.model.typical is None:
            return None
        shares: Doubles = (
            self.model.typical.share(vectors).reshape(-1, self.texts_per_row).min(axis=1)
        )
        return shares

    def unlisted(self) -> list[int]:
        """How many of each text's tokens the vocabulary does not list."""
        return list(map(self.model.vocab.unlisted, self.sentences))

    def unfamiliar(self, unlisted: Sequence[int]) -> int:
        """How many rows hold a text of another script, or mostly of unlisted words. `unlisted` is self.unlisted()."""
        texts = zip(self.parses, unlisted, strict=True)
        return self._rows([unfamiliar(parse.text, len(parse), count) for parse, count in texts])

    def result(
        self,
        value: T,
        queue: float = 0.0,
        inference: float = 0.0,
    ) -> Result[T]:
        """The value with its counts and times, both in seconds."""
        cut = [parse.cut for parse in self.parses]
        unlisted = self.unlisted()
        return Result(
            value=value,
            card=self.model.card,
            timing=Timing(self.seconds, queue, inference),
            inputs=len(cut) // self.texts_per_row,
            truncated=self._rows(cut),
            tokens=sum(map(len, self.parses)),
            unlisted=sum(unlisted),
            unfamiliar=self.unfamiliar(unlisted),
        )

    def _rows(self, texts: Sequence[bool]) -> int:
        """How many rows have such a text."""
        step = self.texts_per_row
        if step == 1:
            return sum(texts)
        return sum(any(texts[i : i + step]) for i in range(0, len(texts), step))
