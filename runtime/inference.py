"""A model's answers: texts -> vectors and probabilities, as requests that an engine runs."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.runtime.answers import (
    Result,
    TokenizedText,
    cosines,
    expected_score,
    head_scores,
    unit_rows,
)
from heedful.runtime.engine.cache import Key, VectorCache
from heedful.runtime.engine.windows import split
from heedful.runtime.engine.work import Request, Steps, Work, parse
from heedful.runtime.errors import BadInput, InferenceFailed
from heedful.runtime.explain.explain import (
    ExplainResult,
    check_length,
    check_priors,
    explain,
    max_tokens,
)
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs
from heedful.runtime.loaded_model import ROWS_AT_ONCE, LoadedModel
from heedful.runtime.parsed import Parsed
from heedful.text.arrays import Doubles, Floats
from heedful.text.batch import Sentence
from heedful.text.pairs import in_pairs
from heedful.text.parse import Parse, Parser
from heedful.text.vocab import Vocab

T = TypeVar("T")


@dataclass(slots=True)
class Inference:
    """A model with its parser, limits and cache: `Service.bind` creates one for each request.

    The methods raise BadInput and TooManyInputs before their request runs; `Engine.answer` says what it raises.
    """

    model: LoadedModel
    parser: Parser
    max_rows: int = sys.maxsize
    cache: VectorCache | None = None
    answered: list[tuple[LoadedModel, Floats, int]] = field(default_factory=list)
    """Collects the vectors of answered inputs (`runtime.out_of_distribution`)."""

    def embed(
        self,
        inputs: Inputs,
        *,
        truncate: bool = False,
        mean: bool = False,
        normalize: bool = False,
        dimensions: int | None = None,
    ) -> Request[Result[Floats]]:
        """Vectors (N, D), cut to the first `dimensions` values and then scaled to length 1.

        With `mean` a text that is too long has the mean of its windows' vectors.
        """
        width = self.model.card.dimension
        if dimensions is not None and not 1 <= dimensions <= width:
            raise BadInput(
                f"dimensions is {dimensions}: the model has {width}",
                param="dimensions",
                code="invalid_value",
            )

        def finish(vectors: Floats) -> Floats:
            leading = vectors[:, :dimensions]
            if normalize:
                return unit_rows(leading).astype(np.float32)
            return np.ascontiguousarray(leading)

        return self.request(inputs, self._vectors(inputs, finish, truncate=truncate, mean=mean))

    def similarity(
        self, source: Inputs, others: Inputs, *, truncate: bool = False, mean: bool = False
    ) -> Request[Result[Doubles]]:
        """Cosines (N,) of one text with each of the others; `mean` as in `embed`."""
        items, paths = [*source.items, *others.items], [*source.paths, *others.paths]
        all_inputs = replace(others, items=items, paths=paths)
        source.check_texts()

        def finish(vectors: Floats) -> Doubles:
            return cosines(vectors[:1], vectors[1:]).ravel()

        return self.request(others, self._vectors(all_inputs, finish, truncate=truncate, mean=mean))

    def classify(
        self, inputs: Inputs, *, truncate: bool = False, raw: bool = False, trust: bool = False
    ) -> Request[Result[npt.NDArray[Any]]]:
        """Probabilities (N, C) in the order of the card's labels, of texts or of pairs.

        With `raw` logits instead.
        """
        finish = np.asarray if raw else partial(head_scores, self.model.card)
        return self.request(inputs, self._score(inputs, truncate, finish, trust))

    def relatedness(
        self, pairs: Inputs, *, truncate: bool = False, trust: bool = False
    ) -> Request[Result[Doubles]]:
        """How related the two sentences of each pair are, from 1 to 5: (N,)."""
        return self.request(pairs, self._score(pairs, truncate, expected_score, trust))

    def tokenize(
        self, inputs: Inputs, *, truncate: bool = False
    ) -> Request[Result[list[TokenizedText]]]:
        """The tokens that the model reads, always with their tree."""

        def steps() -> Steps[Result[list[TokenizedText]]]:
            parsed = yield from self.read(inputs, truncate=truncate, tree=True)
            return parsed.result(parsed.tokenized())

        return self.request(inputs, steps())

    def explain(
        self, inputs: Inputs, options: ExplainOptions, *, truncate: bool = False
    ) -> Request[Result[ExplainResult]]:
        """The model's attention in a sentence or in the two of a pair."""
        check_priors(self.model, options)
        return self.request(inputs, self._explain(inputs, options, truncate))

    def request(self, inputs: Inputs, steps: Steps[T]) -> Request[T]:
        """The request of these steps. Raises BadInput, TooManyInputs."""
        rows = inputs.count_rows(self.max_rows)
        inputs.check_texts()
        return Request(steps, rows)

    def _explain(
        self, inputs: Inputs, options: ExplainOptions, truncate: bool
    ) -> Steps[Result[ExplainResult]]:
        limit = max_tokens(self.model, options) if truncate else None
        parsed = yield from self.read(inputs, truncate=truncate, tree=True, max_tokens=limit)
        for text, path in zip(parsed.parses, inputs.paths, strict=True):
            check_length(self.model, text, path, options, inputs.remedy)
        explained = yield from explain(parsed, options)
        vectors = np.concatenate([sentence.embedding for sentence in explained.sentences])
        self.answered.append((self.model, vectors, parsed.texts_per_row))
        result = parsed.result(explained)
        if not options.trust:
            return result
        scores = explained.scores if self.model.card.labels else None
        return replace(result, trust=parsed.trust(vectors, scores))

    def _vectors(
        self, inputs: Inputs, finish: Callable[[Floats], T], *, truncate: bool, mean: bool
    ) -> Steps[Result[T]]:
        """The result of `finish` on the encoder's vectors (N, D)."""
        parsed = yield from self.read(inputs, truncate=truncate or mean)
        long = [row for row, text in enumerate(parsed.parses) if text.cut] if mean else []
        if long:
            result = yield from self._mean(inputs, long, finish)
            return replace(result, out_of_domain=parsed.result(None).out_of_domain)
        vectors = yield from self.encode(parsed.sentences)
        self.answered.append((self.model, vectors, parsed.texts_per_row))
        return parsed.result(finish(vectors[:, : self.model.card.dimension]))

    def _mean(
        self, inputs: Inputs, long: Sequence[int], finish: Callable[[Floats], T]
    ) -> Steps[Result[T]]:
        """The result of `finish` on vectors (N, D); those of the `long` inputs are means over windows."""
        windows = yield from split(inputs, long, self.model, self.parser)
        # Cut, because a window may have more tokens than the same part of its text had.
        parsed = yield from self.read(windows.inputs(), truncate=True)
        vectors = yield from self.encode(parsed.sentences)
        lengths = [len(sentence) for sentence in parsed.sentences]
        means = windows.means(vectors[:, : self.model.card.dimension], lengths)
        result = parsed.result(finish(means))
        return replace(result, inputs=len(inputs), truncated=windows.truncated, averaged=len(long))

    def _score(
        self, inputs: Inputs, truncate: bool, finish: Callable[[Floats], T], trust: bool
    ) -> Steps[Result[T]]:
        """The result of `finish` on the logits (N, C) for texts or pairs."""
        parsed = yield from self.read(inputs, truncate=truncate)
        nearest = yield from self.model.nearest(parsed.parses)
        encoded = yield from self.encode([*parsed.sentences, *nearest.values()])
        count, step = len(parsed.sentences), inputs.texts_per_row
        vectors = encoded[:count]
        nearest_vectors = dict(zip(nearest, encoded[count:], strict=True))
        sides = [vectors[side::step] for side in range(step)]
        logits = yield from self.model.answer(parsed.parses, sides, nearest_vectors)
        self.answered.append((self.model, vectors, parsed.texts_per_row))
        result = parsed.result(finish(logits))
        if not trust:
            return result
        scores = head_scores(self.model.card, logits) if self.model.card.labels else None
        return replace(result, trust=parsed.trust(vectors, scores))

    def read(
        self,
        inputs: Inputs,
        *,
        truncate: bool,
        tree: bool = False,
        max_tokens: int | None = None,
        parses: Sequence[Parse] | None = None,
        pairs: bool = False,
    ) -> Steps[Parsed]:
        """Parse the texts, unless `parses` holds them parsed, and look up their words.

        With `tree` they have trees even if the model needs none. `max_tokens` may lower the card's limit. In `pairs`,
        which inputs of two texts a row are too, an NLI model reads texts, but no client's trees, as `text.pairs` says.
        """
        model, card = self.model, self.model.card
        limit = min(card.max_tokens, max_tokens or card.max_tokens)
        items = inputs.items if parses is None else parses
        texts = [item for item in items if isinstance(item, str)]
        parsed_texts = iter((yield from parse(self.parser, texts, limit, tree or card.tree)))
        parses = [
            next(parsed_texts) if isinstance(item, str) else item.first(limit) for item in items
        ]
        typed = [isinstance(item, str) for item in inputs.items]
        are_pairs = card.kind == "nli" and (pairs or inputs.texts_per_row == 2)
        for begin in range(0, len(parses), ROWS_AT_ONCE):
            if begin:
                yield None
            rows = slice(begin, begin + ROWS_AT_ONCE)
            if isinstance(model.vocab, Vocab):  # pieces spell any word
                parses[rows] = model.vocab.corrected(parses[rows], typed[rows])
            if are_pairs:
                parses[rows] = in_pairs(parses[rows], typed[rows], limit, inputs.texts_per_row)
        if model.vocab.limit:
            parses = list(map(model.fit, parses))
        inputs.check_parses(parses, model, self.parser.tokenizer, truncate)
        sentences: list[Sentence] = []
        for begin in range(0, len(parses), ROWS_AT_ONCE):
            if begin:
                yield None
            sentences += model.sentences(parses[begin : begin + ROWS_AT_ONCE])
        return Parsed(model, parses, sentences, inputs.texts_per_row)

    def encode(self, sentences: Sequence[Sentence]) -> Steps[Floats]:
        """The sentences' vectors (N, W), in order, not scaled; equal ones are encoded once. Raises InferenceFailed."""
        cache, version = self.cache, self.model.card.version
        keys: list[Key] = [(version, sentence.key) for sentence in sentences]
        distinct = dict(zip(keys, sentences, strict=True))
        vectors = cache.get(list(distinct)) if cache is not None else {}
        missing = {key: sentence for key, sentence in distinct.items() if key not in vectors}
        work = Work(self.model.encoder, list(missing.values()))
        yield work
        for key, vector in zip(missing, work.outputs, strict=True):
            vectors[key] = vector
            if cache is not None:
                cache.put(key, vector)
        rows = np.array([vectors[key] for key in keys])
        if not np.isfinite(rows).all():
            raise InferenceFailed("the model gave NaN or infinity")
        return rows
