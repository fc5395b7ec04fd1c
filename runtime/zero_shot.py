"""Labels that no model was trained on: how well each label's sentences fit a text.

Up to three models score the pair of a text and a label: an embedding model by the cosine, an NLI model by entailment,
and a sentiment model by whether both are of the same polarity. Each model encodes a text and a label's sentences ("This
example is sports.") once. A pair then costs a dot product, and a row of the NLI model's head.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.runtime.answers import Result, head_scores, log_softmax, sigmoid, softmax, unit_rows
from heedful.runtime.engine.work import Request, Steps
from heedful.runtime.errors import BadInput
from heedful.runtime.inference import Inference
from heedful.runtime.inputs import Inputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.parsed import Parsed
from heedful.text.arrays import Doubles, Floats
from heedful.text.kinds import NEGATIVE, POSITIVE
from heedful.text.parse import Parse

TEMPLATES = ("This example is {}.", "This text is about {}.", "It is {}.", "The topic is {}.")
"""The sentences of a label, unless the client sends a template. The cosine is the mean over them; entailment and
polarity are those of the first, which is the default of transformers' zero-shot pipeline (docs/notes/zero-shot.md says
how they were chosen)."""
MAX_LABELS = 100
PAIRS_AT_ONCE = 1024
"""Pairs of a text and a label that are scored without a pause."""

COSINE_WEIGHT = 30.0
"""Weight of the cosine in its sum with the logarithm of the probability of entailment (docs/notes/zero-shot.md)."""
POLARITY_WEIGHT = 4.0
"""Weight of the product of a text's and a label's polarities, which are from -1 (negative) to 1 (positive), and, where
labels are positive, negative and neutral, of the probability that a text is neutral, for the neutral ones."""
NONE_COSINE, NONE_ENTAILMENT = 0.2, 0.5
"""Cosine and probability of entailment of "none of these", whose polarity is 0, and with which labels compete
(docs/notes/zero-shot.md)."""


@dataclass(frozen=True, slots=True)
class Labels:
    """A request's labels, the template of their sentences, and the paths of both in the request."""

    names: Sequence[str]
    template: str | None = None
    """None for TEMPLATES."""
    multi: bool = False
    """Whether several labels may fit a text: each then has a probability that does not depend on the others."""
    path: str = "labels"
    template_path: str = "hypothesis_template"

    def sentences(self) -> Inputs:
        """Each label's sentences, label by label.

        Raises BadInput for blank or equal labels, too many of them, and a template without one {}.
        """
        if not 1 <= len(self.names) <= MAX_LABELS:
            message = f"{self.path} holds {len(self.names)}: send 1 to {MAX_LABELS}"
            raise BadInput(message, param=self.path, code="invalid_value")
        Inputs.from_texts(self.names, self.path).check_texts()
        templates = TEMPLATES if self.template is None else (self.template,)
        Inputs(templates, [self.template_path] * len(templates)).check_texts()
        if any(template.count("{}") != 1 for template in templates):
            message = f"{self.template_path} must hold {{}} once, in place of the label"
            raise BadInput(message, param=self.template_path, code="invalid_value")
        places: dict[str, int] = {}
        for i, name in enumerate(self.names):
            first = places.setdefault(" ".join(name.casefold().split()), i)
            if first != i:
                param = f"{self.path}[{i}]"
                message = (
                    f"{param} repeats {self.path}[{first}] (case does not count): leave it out"
                )
                raise BadInput(message, param=param, code="invalid_value")
        sentences = [template.replace("{}", name) for name in self.names for template in templates]
        paths = [f"{self.path}[{i}]" for i in range(len(self.names)) for _ in templates]
        return Inputs(sentences, paths)


@dataclass(frozen=True, slots=True)
class ZeroShot:
    """The models that score labels: an embedding model, an NLI model, or both and then a sentiment model."""

    inferences: Sequence[Inference]

    def classify(
        self, inputs: Inputs, labels: Labels, *, truncate: bool = False, trust: bool = False
    ) -> Request[Result[Doubles]]:
        """Probabilities (N, L + 1): of the L labels and, last, that none of them fits.

        Those of the labels add up to 1, unless several may fit or there is only one. The result's card, counts and
        trust are those of the first model. Raises BadInput and TooManyInputs before the request runs.
        """
        steps = self._classify(inputs, labels, labels.sentences(), truncate, trust)
        return self.inferences[0].request(inputs, steps)

    def _classify(
        self, inputs: Inputs, labels: Labels, sentences: Inputs, truncate: bool, trust: bool
    ) -> Steps[Result[Doubles]]:
        count, label_count = len(inputs), len(labels.names)
        scores, none = np.zeros((count, label_count)), 0.0
        texts = replace(
            inputs, items=[*inputs.items, *sentences.items], paths=[*inputs.paths, *sentences.paths]
        )
        tree = any(inference.model.card.tree for inference in self.inferences)
        parses: Sequence[Parse] | None = None  # of the texts, for all models
        parsed_texts: list[tuple[Parsed, Floats]] = []
        for inference in self.inferences:
            model, kind = inference.model, inference.model.card.kind
            if kind != "embedding":  # the first sentence of each label
                step = (len(texts) - count) // label_count
                rows = [*range(count), *range(count, len(texts), step)]
                texts = replace(
                    texts,
                    items=[texts.items[row] for row in rows],
                    paths=[texts.paths[row] for row in rows],
                )
                parses = parses and [parses[row] for row in rows]
            parsed = yield from inference.read(
                texts, truncate=truncate, tree=tree, parses=parses, pairs=True
            )
            parses = parses or parsed.parses
            encoded = yield from inference.encode(parsed.sentences)
            vectors, label_vectors = encoded[:count], encoded[count:]
            inference.answered.append((model, vectors, 1))
            if kind == "embedding":
                by_label = label_vectors.reshape(label_count, -1, label_vectors.shape[1])
                scores += yield from _by_cosine(model.card.dimension, vectors, by_label)
                none += COSINE_WEIGHT * NONE_COSINE
            elif kind == "nli":
                scores += yield from _by_entailment(model, vectors, label_vectors)
                none += math.log(NONE_ENTAILMENT)
            else:
                logits = yield from model.logits(encoded)
                scores += _by_polarity(head_scores(model.card, logits), model.card.labels, count)
            parsed_texts.append((parsed.first(count), vectors))
        answer = _probabilities(scores, none, multi=labels.multi or label_count == 1)
        parsed, vectors = parsed_texts[0]
        result = parsed.result(answer)
        return replace(result, trust=parsed.trust(vectors, answer[:, :-1])) if trust else result


def _by_cosine(width: int, texts: Floats, labels: Floats) -> Steps[Doubles]:
    """Scores (N, L) of texts (N, D) and labels of S sentences (L, S, D), from the leading `width` values."""
    means = np.mean([unit_rows(sentences[:, :width]) for sentences in labels], axis=1)
    scores = np.empty((len(texts), len(labels)))
    for rows in _parts(len(texts), len(labels)):
        yield None
        scores[rows] = COSINE_WEIGHT * (unit_rows(texts[rows, :width]) @ means.T)
    return scores


def _by_entailment(model: LoadedModel, texts: Floats, labels: Floats) -> Steps[Doubles]:
    """Log probabilities (N, L) that texts (N, D) entail the labels' sentences (L, D)."""
    scores = np.empty((len(texts), len(labels)))
    for rows in _parts(len(texts), len(labels)):
        premises = np.repeat(texts[rows], len(labels), axis=0)
        hypotheses = np.tile(labels, (len(texts[rows]), 1))
        logits = yield from model.logits(premises, hypotheses)
        logs = log_softmax(logits)[:, model.card.labels.index("entailment")]
        scores[rows] = logs.reshape(-1, len(labels))
    return scores


def _by_polarity(sentiment: Doubles, labels: Sequence[str], count: int) -> Doubles:
    """Scores (N, L) from a sentiment model's probabilities (N + L, C) of N = `count` texts and L labels' sentences."""
    positive, negative = sentiment[:, labels.index(POSITIVE)], sentiment[:, labels.index(NEGATIVE)]
    polarity, neutral = positive - negative, 1 - positive - negative
    agreement = np.outer(polarity[:count], polarity[count:])
    is_neutral = neutral[count:] > np.maximum(positive, negative)[count:]
    if len(np.unique(sentiment[count:].argmax(axis=1))) == 3:  # else neutral labels are topics
        agreement += np.outer(neutral[:count], is_neutral)
    return POLARITY_WEIGHT * agreement


def _parts(texts: int, labels: int) -> Iterator[slice]:
    """Slices of the texts with at most PAIRS_AT_ONCE pairs, or with one text."""
    step = max(1, PAIRS_AT_ONCE // labels)
    return (slice(begin, begin + step) for begin in range(0, texts, step))


def _probabilities(scores: Doubles, none: float, *, multi: bool) -> Doubles:
    """Probabilities (N, L + 1) from the labels' scores (N, L) and the score of "none of these".

    The latter competes with all labels. Where several labels may fit, each competes only with it.
    """
    with_none = np.column_stack([scores, np.full(len(scores), none)])
    labels = sigmoid(scores - none) if multi else softmax(scores)
    return np.column_stack([labels, softmax(with_none)[:, -1]])
