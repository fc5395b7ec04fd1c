"""A loaded bundle that answers in the caller's thread."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress

from heedful.library.explanation import Explanation
from heedful.library.inputs import (
    Pairs,
    Text,
    check_batch_size,
    in_chunks,
    is_count,
    is_text,
    pair_inputs,
    text_inputs,
    text_of,
)
from heedful.library.processes import Processes
from heedful.runtime.answers import (
    Precision,
    Result,
    as_precision,
    check_precision,
    chosen,
    unit_rows,
)
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import CARD, Card
from heedful.runtime.engine.work import Request, parse, run_now
from heedful.runtime.errors import BadInput, BundleError, Unavailable, WrongTask
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inference import Inference
from heedful.runtime.inputs import Inputs
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.model_registry import KINDS, Task, check_parser, is_sentiment
from heedful.runtime.zero_shot import Labels, ZeroShot
from heedful.text.arrays import Doubles, Floats
from heedful.text.forks import ForkSafe
from heedful.text.parse import Parser

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """A task for rows, other than explain and zero-shot, and its keywords in `runtime.inference.Inference`."""

    task: Task
    keywords: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | None = None


class Keywords(TypedDict, total=False):
    """Keywords of the methods that answer texts and pairs: those of `Model.encode`."""

    batch_size: int | None
    show_progress_bar: bool | None
    truncate: bool


class FittingLabels(NamedTuple):
    """The label that fits a text best, all labels with their scores, best first, and the probability that none fits."""

    label: str
    scores: dict[str, float]
    none: float


class Model(ForkSafe):
    """A bundle in this process. Threads may share it; `with` closes it.

    The methods raise BadInput for a text that cannot be read, and WrongTask where the model does another task.
    """

    def __init__(
        self,
        folder: Path,
        loaded: LoadedModel,
        parser: Parser,
        threads: int,
        processes: Processes | None,
        reload: Callable[[str], "Model"],
    ) -> None:
        """`reload` loads a version of the bundle in another process, for pickles.

        Raises BundleError for another parser than the bundle was trained with.
        """
        check_parser(loaded.card, parser)
        self.folder = folder
        self._loaded, self._parser, self._thread_count = loaded, parser, threads
        self._is_closed = False
        self._processes, self._reload = processes, reload
        super().__init__()

    def renew(self) -> None:
        count = self._thread_count
        self._threads = ThreadPoolExecutor(count, "session") if count > 1 else None

    @property
    def card(self) -> Card:
        """The model, its training data and its scores."""
        return self._loaded.card

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes in the order of `predict_proba`'s columns."""
        return self.card.labels

    def encode(
        self,
        sentences: Text | Iterable[Text],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = False,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        truncate: bool = True,
        prompt: str | None = None,
        precision: Precision = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        paths: Sequence[str] | None = None,
    ) -> npt.NDArray[Any]:
        """Vectors (N, D), or (D,) for a single string or document of spaCy, whose tree is read.

        With `precision` in fewer bits (`runtime.answers.as_precision`).

        The keywords but `truncate` and `paths` are sentence-transformers', which has more (docs/library.md).
        `batch_size` is the largest number of texts in a batch, by default that of the service. Vectors are cut to the
        first `truncate_dim` values, then scaled to length 1 unless `normalize_embeddings` is false. Without `truncate`,
        a text that is longer than the model reads raises BadInput, whose message calls text i `paths[i]`, by default
        `sentences[i]`. A wrong keyword raises BadInput too.
        """
        if convert_to_tensor or not convert_to_numpy:
            raise BadInput("convert_to_tensor: use torch.from_numpy(model.encode(..))")
        check_precision(precision)
        width = self.card.dimension
        if truncate_dim is not None:
            if not is_count(truncate_dim) or truncate_dim > width:
                reason = f"{self.card.name} has {width}: give a whole number from 1 to {width}"
                raise BadInput(f"truncate_dim is {truncate_dim!r}, {reason}", param="truncate_dim")
            width = truncate_dim
        single = isinstance(sentences, Text)
        rows = cast(Iterable[Text], [sentences] if single else sentences)
        inputs = text_inputs(rows, "sentences")
        if paths is not None:
            inputs = replace(inputs, paths=paths)
        if prompt:
            inputs.check_texts()  # a blank text after the prompt would pass
            inputs = replace(inputs, items=[f"{prompt}{text_of(item)}" for item in inputs.items])
        vectors = self._answers(
            "embed",
            inputs,
            (width,),
            {"normalize": normalize_embeddings, "dimensions": truncate_dim},
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            truncate=truncate,
        )
        vectors = as_precision(vectors, precision)
        return cast(npt.NDArray[Any], vectors[0]) if single else vectors

    def similarity(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
        """Cosines (N, M) of vectors (N, D) with vectors (M, D).

        Raises BadInput for vectors of different widths, and for values that are no numbers.
        """
        rows, columns = _unit_vectors("first", first), _unit_vectors("second", second)
        if rows.shape[1] != columns.shape[1]:
            widths = f"first has the width {rows.shape[1]}, second {columns.shape[1]}"
            raise BadInput(f"{widths}: encode both with the same truncate_dim", param="second")
        return cast(Floats, (rows @ columns.T).astype(np.float32))

    def predict_proba(self, texts: Iterable[Text], **keywords: Unpack[Keywords]) -> Doubles:
        """Probabilities (N, C), in the order of `labels`."""
        inputs = text_inputs(texts, "texts")
        return self._answers("classify", inputs, (len(self.labels),), **keywords)

    def predict(self, texts: Iterable[Text], **keywords: Unpack[Keywords]) -> npt.NDArray[Any]:
        """The most probable label of each text (N,), None where the model abstains.

        Of a multi-label model, booleans (N, C): the labels of probability 0.5 and more.
        """
        scores = self.predict_proba(texts, **keywords)
        return scores >= 0.5 if self.card.multi_label else np.array(self.chosen(scores), object)

    def chosen(self, probabilities: Doubles) -> list[Any]:
        """The most probable label of each row (N, C), None where the model abstains.

        Of a multi-label model, a list of the labels of probability 0.5 and more.
        """
        if self.card.multi_label:
            return [[self.labels[i] for i in np.flatnonzero(row >= 0.5)] for row in probabilities]
        return chosen(self.card, probabilities)

    def classify(
        self,
        texts: Iterable[Text],
        labels: Sequence[str],
        *,
        hypothesis_template: str | None = None,
        multi_label: bool = False,
        nli: "Model | None" = None,
        sentiment: "Model | None" = None,
        batch_size: int | None = None,
        truncate: bool = True,
    ) -> list[FittingLabels]:
        """How well each of your `labels` fits each text: zero-shot classification.

        By the cosine of an embedding model or the entailment of an NLI model. With an embedding model also by the
        entailment of `nli`, and by whether `sentiment` finds text and label both positive or both negative. A label
        replaces the {} of the template; without a template each label has several sentences. The scores of a text's
        labels add up to 1, unless `multi_label` says that several may fit, or there is only one. Raises BadInput for
        labels that are blank, repeated or more than 100.
        """
        for name, model in (("nli", nli), ("sentiment", sentiment)):
            if model is not None and not isinstance(model, Model):
                kind = type(model).__name__
                raise BadInput(f"{name} is {kind}: give a model of heedful.load", param=name)
        if nli is not None and (self.card.kind, nli.card.kind) != ("embedding", "nli"):
            kinds = f"{self.card.name} is of the kind {self.card.kind}, {nli.card.name} of {nli.card.kind}"
            message = f"{kinds}: use an embedding model, and an NLI model as nli"
            raise WrongTask(message, param="nli")
        if sentiment is not None and not (nli and is_sentiment(sentiment.card)):
            message = f"{sentiment.card.name}: give a model of the task sentiment, and an NLI model as nli"
            raise WrongTask(message, param="sentiment")
        models = [model for model in (self, nli, sentiment) if model is not None]
        check_batch_size(batch_size)
        parser = next((model._parser for model in models if model.card.needs_parser), self._parser)
        for model in models:  # they share each text's parse
            check_parser(model.card, parser)
        names = cast(Sequence[str], text_inputs(labels, "labels").items)
        zero_shot_labels = Labels(names, hypothesis_template, multi_label)
        zero_shot = ZeroShot(
            [
                Inference(model._choose("classify" if model is sentiment else "zero-shot"), parser)
                for model in models
            ]
        )
        inputs = text_inputs(texts, "texts")
        inputs.check_texts()
        answers: list[Any] = [None] * len(inputs)
        for rows, part in in_chunks(inputs):
            request = zero_shot.classify(part, zero_shot_labels, truncate=truncate)
            for row, scores in zip(rows, self._run(request, batch_size).value, strict=True):
                order = np.argsort(-scores[:-1], kind="stable")
                ranked = {names[i]: float(scores[i]) for i in order}
                answers[row] = FittingLabels(next(iter(ranked)), ranked, float(scores[-1]))
        return answers

    @overload
    def nli(
        self, pairs: Pairs, hypothesis: None = ..., **keywords: Unpack[Keywords]
    ) -> list[dict[str, float]]: ...

    @overload
    def nli(
        self, pairs: str, hypothesis: str, **keywords: Unpack[Keywords]
    ) -> dict[str, float]: ...

    def nli(
        self, pairs: Any, hypothesis: str | None = None, **keywords: Unpack[Keywords]
    ) -> list[dict[str, float]] | dict[str, float]:
        """The probabilities of entailment, neutral and contradiction for each (premise, hypothesis).

        A pair may also be a dictionary of `premise` and `hypothesis`, as in the service. `nli(premise, hypothesis)`
        returns the dictionary of a single pair.
        """
        rows = pairs if hypothesis is None else [(pairs, hypothesis)]
        inputs = pair_inputs(rows, ("premise", "hypothesis"))
        scores = self._answers("nli", inputs, (len(self.labels),), **keywords)
        answers = [dict(zip(self.labels, row.tolist(), strict=True)) for row in scores]
        return answers if hypothesis is None else answers[0]

    def relatedness(self, pairs: Pairs, **keywords: Unpack[Keywords]) -> Doubles:
        """How related the sentences of each pair are (N,), from 1 to 5.

        A pair may also be a dictionary of `a` and `b`, as in the service.
        """
        inputs = pair_inputs(pairs, ("a", "b"))
        return self._answers("relatedness", inputs, (), **keywords)

    def fits(self, texts: Iterable[Text], *, truncate: bool = False) -> npt.NDArray[np.bool_]:
        """Whether each text (N,) can be read: it is not blank and, unless `truncate`, not too long.

        A missing value (None, NaN, pandas' NA) cannot be read.
        """
        inputs = text_inputs(texts, "texts", missing_is_blank=True)
        items = list(map(text_of, inputs.items))
        steps = parse(self._parser, items, self.card.max_tokens, tree=False)
        parses = map(self._loaded.fit, run_now(steps, self._threads))
        return np.array(
            [
                is_text(text) and len(parse) > 0 and (truncate or not parse.cut)
                for text, parse in zip(inputs.items, parses, strict=True)
            ],
            bool,
        )

    def explain(
        self,
        text: Text,
        second: Text | None = None,
        options: ExplainOptions | None = None,
        *,
        truncate: bool = False,
        **choices: Any,
    ) -> Explanation:
        """The model's attention in a text, or in a text and the `second` text of a pair.

        A notebook draws it. `options`, or their fields as keywords such as `evidence=True`, switch priors off and
        request more (docs/explain.md). A text that is too long for these options raises BadInput. With `truncate` it is
        cut: the answer may then differ from that of `predict`, which reads longer texts.
        """
        options = ExplainOptions(**choices) if options is None else options
        if not isinstance(options, ExplainOptions):
            reason = f"options is {type(options).__name__}: leave it out, and give evidence=True"
            raise BadInput(reason, param="options")
        task: Task = "explain"
        inputs = text_inputs([text], "text")
        if second is not None:
            task = "relatedness" if self.card.kind == "relatedness" else "nli"
            inputs = pair_inputs([(text, second)], ("text", "second"))
        inference = Inference(self._choose(task), self._parser)
        result = self._run(inference.explain(inputs, options, truncate=truncate))
        return Explanation.make(self.card, result, options)

    def answer(self, question: Question, inputs: Inputs) -> npt.NDArray[Any]:
        """The answers to a question for a few rows, in their order."""
        method = "classify" if question.task == "nli" else question.task
        request = getattr(Inference(self._choose(question.task), self._parser), method)
        result = self._run(request(inputs, **question.keywords), question.batch_size)
        answer: npt.NDArray[Any] = result.value
        return answer

    def check_golden(self) -> None:
        """Compare with the bundle's golden vectors, if it has any. Raises BundleError beyond their tolerance."""
        self._loaded.check_golden()

    def close(self) -> None:
        """End the model's threads and processes. It answers no more."""
        self._is_closed = True
        if self._threads:
            self._threads.shutdown(wait=False)
        if self._processes:
            self._processes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[str], "Model"], tuple[str]]:
        """A pickle or a copy loads the bundle again. Raises BundleError where it has been replaced."""
        return self._reload, (self.card.version,)

    def __repr__(self) -> str:
        return f"<Model {self.card.name} {self.card.version}: {self.card.kind}>"

    def _run(self, request: Request[Result[T]], batch_size: int | None = None) -> Result[T]:
        """The request's result. Raises Unavailable once the model is closed."""
        if self._is_closed:
            raise Unavailable("the model is closed: load it again")
        return run_now(request.steps, self._threads, max_items=batch_size)

    def _choose(self, task: Task) -> LoadedModel:
        """The model. Raises WrongTask, which names the bundles in its folder that do the task."""
        kinds = KINDS[task]
        if self.card.kind not in kinds:
            names = ", ".join(_names_of_kinds(self.folder.parent, kinds))
            remedy = f"load {names}" if names else f"load a bundle of the kind {kinds[0]}"
            raise WrongTask(f"{self.card.name} does not do {task}: {remedy}", param="model")
        return self._loaded

    def _answers(
        self,
        task: Task,
        inputs: Inputs,
        shape: tuple[int, ...],
        more: Mapping[str, Any] = {},
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = False,
        truncate: bool = True,
    ) -> npt.NDArray[Any]:
        """The answers, each of this shape, in order. `more` are keywords of the task alone."""
        self._choose(task)
        check_batch_size(batch_size)
        inputs.check_texts()
        question = Question(task, {"truncate": truncate, **more}, batch_size)
        chunks = list(in_chunks(inputs))
        parts = [part for _, part in chunks]
        if self._processes and len(parts) > 1:
            answers = self._processes.answers(question, parts)
        else:
            answers = (self.answer(question, part) for part in parts)
        joined = np.empty((len(inputs), *shape), np.float32 if task == "embed" else np.float64)
        with Progress(console=Console(stderr=True), disable=not show_progress_bar) as bar:
            shown = bar.add_task(self.card.name, total=len(inputs))
            for (rows, _), answer in zip(chunks, answers, strict=True):
                joined[rows] = answer
                bar.advance(shown, len(rows))
        return joined


def _unit_vectors(name: str, value: npt.ArrayLike) -> Doubles:
    """The rows (N, D) scaled to length 1; N is 1 for a single vector. Raises BadInput for no array of numbers."""
    try:
        numbers = np.atleast_2d(np.asarray(value, np.float64))
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name} holds no vectors: give those of encode", param=name) from error
    if numbers.ndim != 2:
        reason = f"{name} has {numbers.ndim} dimensions: give vectors of encode, (N, D)"
        raise BadInput(reason, param=name)
    return unit_rows(numbers)


def _names_of_kinds(models: Path, kinds: Sequence[str]) -> list[str]:
    """The names of the bundles in a folder that are of one of these kinds."""
    names = []
    for card in sorted(models.glob(f"*/{CARD}")):
        with suppress(BundleError):  # a broken bundle is no remedy
            if read_card(card.parent).kind in kinds:
                names.append(card.parent.name)
    return names
