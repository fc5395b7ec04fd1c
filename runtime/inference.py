"""One request's work by one model: texts in, vectors and probabilities out."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.runtime.answers import (
    Result,
    TokenizedText,
    cosines,
    expected_score,
    normalise,
    probabilities,
)
from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.admission import Admission
from heedful.runtime.engine.session import SessionThreads
from heedful.runtime.engine.steps import Encoded, EncodeStep, ParseStep
from heedful.runtime.engine.windows import split
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.explain.service import (
    ExplainResult,
    check_length,
    check_priors,
    explain,
    max_tokens,
)
from heedful.runtime.inputs import Inputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.parsed import Parsed
from heedful.runtime.untypical import UntypicalInputs
from heedful.text.arrays import Doubles, Floats
from heedful.text.batch import Sentence
from heedful.text.parse import Parse, ParseJob
from heedful.text.trees import first

T = TypeVar("T")

ROWS_AT_ONCE = 32
"""Sentences whose words are looked up without a pause: 1 ms, or 2 where all words are composed."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What all requests share: `runtime.service` makes one that waits, `runtime.engine.direct` one that does not."""

    parses: ParseStep
    scheduler: EncodeStep
    head_threads: SessionThreads
    explain_threads: SessionThreads
    admission: Admission
    max_batch_inputs: int  # of one request
    untypical: UntypicalInputs | None = None
    """None where nobody counts them."""


@dataclass(frozen=True, slots=True)
class Inference:
    """A model bound to one request; `Service.bind` makes it.

    Every method raises BadInput, TooManyInputs, Overloaded, Unavailable and InferenceFailed.
    """

    model: LoadedModel
    engine: Engine
    bulk: bool = False
    """Whether it waits while other requests do."""
    alone: bool = False
    """Whether it is the only request: then no step waits for others to be done together with it."""

    @property
    def card(self) -> Card:
        return self.model.card

    async def embed(
        self,
        inputs: Inputs,
        *,
        truncate: bool = False,
        mean: bool = False,
        normalize: bool = False,
        dimensions: int | None = None,
    ) -> Result[Floats]:
        """Vectors (N, D), cut to the first `dimensions` values and then scaled to length 1.

        With `mean` a text that is too long has the mean of its windows' vectors.
        """
        width = self.card.dimension
        if dimensions is not None and not 1 <= dimensions <= width:
            raise BadInput(
                f"dimensions is {dimensions}: the model has {width}",
                param="dimensions",
                code="invalid_value",
            )

        def finish(vectors: Floats) -> Floats:
            cut = vectors[:, :dimensions]
            return normalise(cut) if normalize else np.ascontiguousarray(cut)

        with self._admit(inputs):
            return await self._vectors(inputs, finish, truncate=truncate, mean=mean)

    async def similarity(
        self, source: Inputs, others: Inputs, *, truncate: bool = False, mean: bool = False
    ) -> Result[Doubles]:
        """Cosines (N,) of one text with each of the others; `mean` as in `embed`."""
        others.check_count(self.engine.max_batch_inputs)
        both = Inputs([*source.items, *others.items], [*source.paths, *others.paths])
        both.check_texts()

        def finish(vectors: Floats) -> Doubles:
            return cosines(vectors[0], vectors[1:])

        with self.engine.admission.admit(len(others), bulk=self.bulk):
            return await self._vectors(both, finish, truncate=truncate, mean=mean)

    async def classify(
        self, inputs: Inputs, *, truncate: bool = False, raw: bool = False, trust: bool = False
    ) -> Result[npt.NDArray[Any]]:
        """Probabilities (N, C) in the order of the card's labels, of texts or of pairs.

        With `raw` logits instead.
        """
        finish = np.asarray if raw else partial(probabilities, self.card)
        return await self._score(inputs, truncate, finish, trust)

    async def relatedness(
        self, pairs: Inputs, *, truncate: bool = False, trust: bool = False
    ) -> Result[Doubles]:
        """How related the two sentences of each pair are, from 1 to 5: (N,)."""
        return await self._score(pairs, truncate, expected_score, trust)

    async def tokenize(
        self, inputs: Inputs, *, truncate: bool = False
    ) -> Result[list[TokenizedText]]:
        """The tokens that the model would read, always with their tree."""
        with self._admit(inputs):
            parsed = await self._parse(inputs, truncate=truncate, tree=True)
        return parsed.result(parsed.tokenized())

    async def explain(
        self, inputs: Inputs, options: ExplainOptions, *, truncate: bool = False
    ) -> Result[tuple[list[TokenizedText], ExplainResult]]:
        """What the model attends to in a sentence or in the two of a pair."""
        check_priors(self.model, options)
        inputs.check_texts()
        limit = max_tokens(self.model, options) if truncate else None
        with self.engine.admission.admit(1, bulk=self.bulk):
            parsed = await self._parse(inputs, truncate=truncate, tree=True, max_tokens=limit)
            for parse, path in zip(parsed.parses, inputs.paths, strict=True):
                check_length(self.model, parse, path, options)
            found = await explain(self.model, self.engine.explain_threads, parsed.parses, options)
        vectors = np.concatenate([one.embedding for one in found.sentences])
        self._count_untypical(parsed, vectors)
        result = parsed.result((parsed.tokenized(), found), found.waited, found.seconds)
        if not options.trust:
            return result
        return replace(result, trust=parsed.trust(vectors, found.probabilities(self.card)))

    async def _vectors(
        self, inputs: Inputs, finish: Callable[[Floats], T], *, truncate: bool, mean: bool
    ) -> Result[T]:
        """What `finish` makes of the vectors (N, D) that the encoder gives."""
        parsed = await self._parse(inputs, truncate=truncate or mean)
        long = parsed.cut() if mean else []
        if long:
            unfamiliar = parsed.unfamiliar(parsed.unlisted())
            return replace(await self._mean(inputs, long, finish), unfamiliar=unfamiliar)
        encoded = await self._encode(parsed)
        self._count_untypical(parsed, encoded.vectors)
        sentences = encoded.vectors[:, : self.card.dimension]
        return parsed.result(finish(sentences), encoded.queue, encoded.inference)

    async def _mean(
        self, inputs: Inputs, long: Sequence[int], finish: Callable[[Floats], T]
    ) -> Result[T]:
        """What `finish` makes of vectors (N, D); those of the `long` inputs are means over windows."""
        windows = await split(inputs, long, self.model, self.engine.parses, bulk=self.bulk)
        # A cut run may give more tokens.
        parsed = await self._parse(windows.inputs(), truncate=True)
        encoded = await self._encode(parsed)
        sentences = encoded.vectors[:, : self.card.dimension]
        means = windows.means(sentences, [len(one) for one in parsed.sentences])
        result = parsed.result(finish(means), encoded.queue, encoded.inference)
        return replace(result, inputs=len(inputs), truncated=windows.truncated, averaged=len(long))

    async def _score(
        self, inputs: Inputs, truncate: bool, finish: Callable[[Floats], T], trust: bool
    ) -> Result[T]:
        """What `finish` makes of the head's logits (N, C) for texts or pairs."""
        with self._admit(inputs):
            parsed = await self._parse(inputs, truncate=truncate)
            encoded = await self._encode(parsed)
            step = inputs.texts_per_row
            sides = [encoded.vectors[side::step] for side in range(step)]
            logits, seconds = await self.model.logits(self.engine.head_threads, *sides)
        seconds += encoded.inference
        self._count_untypical(parsed, encoded.vectors)
        result = parsed.result(finish(logits), encoded.queue, seconds)
        if not trust:
            return result
        found = probabilities(self.card, logits) if self.card.labels else None
        return replace(result, trust=parsed.trust(encoded.vectors, found))

    def _count_untypical(self, parsed: Parsed, vectors: Floats) -> None:
        if self.engine.untypical is not None:
            self.engine.untypical.add(self.model, vectors, parsed.texts_per_row)

    def _admit(self, inputs: Inputs) -> AbstractContextManager[None]:
        """Check the inputs and count them as in flight."""
        inputs.check_count(self.engine.max_batch_inputs)
        inputs.check_texts()
        return self.engine.admission.admit(len(inputs), bulk=self.bulk)

    async def _parse(
        self,
        inputs: Inputs,
        *,
        truncate: bool,
        tree: bool = False,
        max_tokens: int | None = None,
    ) -> Parsed:
        """Parse the texts and look up their words.

        `tree` asks for trees even if the model needs none. `max_tokens` may lower the card's limit.
        """
        model, card = self.model, self.model.card
        started = time.perf_counter()
        limit = min(card.max_tokens, max_tokens or card.max_tokens)
        jobs = [
            ParseJob(item, limit, tree or card.tree)
            for item in inputs.items
            if isinstance(item, str)
        ]
        made = iter(await self.engine.parses.get(jobs, bulk=self.bulk, alone=self.alone))
        parses = [
            model.fit(next(made) if isinstance(item, str) else _cut(item, limit))
            for item in inputs.items
        ]
        inputs.check_parses(parses, card, model.vocab.limit, truncate=truncate)
        sentences: list[Sentence] = []
        for begin in range(0, len(parses), ROWS_AT_ONCE):
            if len(parses) > ROWS_AT_ONCE:
                await self.engine.parses.pause()
            sentences += map(model.sentence, parses[begin : begin + ROWS_AT_ONCE])
        seconds = time.perf_counter() - started
        return Parsed(model, parses, sentences, inputs.texts_per_row, seconds)

    def _encode(self, parsed: Parsed) -> Awaitable[Encoded]:
        return self.engine.scheduler.encode(
            self.model.encoder, parsed.sentences, bulk=self.bulk, alone=self.alone
        )


def _cut(parse: Parse, max_tokens: int) -> Parse:
    """The first tokens of a given tree."""
    return parse if len(parse) <= max_tokens else first(parse, max_tokens)
