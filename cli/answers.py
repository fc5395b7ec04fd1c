"""What a model says of rows of texts: labels and scores, for the commands that read a user's file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.cli.errors import CommandError
from heedful.cli.placement import Place
from heedful.cli.texts import Columns, Row
from heedful.library.model import Model, Question
from heedful.runtime.bundles.bundle import read_card
from heedful.runtime.bundles.card import Card
from heedful.runtime.errors import BadInput
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.text.arrays import Doubles

PAIR = ("premise", "hypothesis")
"""The columns of a pair where none are named."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A model's name or folder, labels for one that was trained on none, and the columns of pairs if they are named."""

    model: str | None = None
    labels: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None

    @classmethod
    def of(
        cls, model: str | None, labels: str, premise: str | None, hypothesis: str | None
    ) -> "Asked":
        """From the options as they are typed."""
        given = tuple(label.strip() for label in labels.split(",") if label.strip())
        pair = (premise or PAIR[0], hypothesis or PAIR[1]) if premise or hypothesis else None
        return cls(model, given, pair)

    @property
    def task(self) -> Task:
        """That for which the service has a model where none is named."""
        return "embed" if self.labels else "nli" if self.pair else "classify"

    def columns(
        self, place: Place, text: str, *, labels: str | None = None, whole: bool = False
    ) -> Columns:
        """Those that the model reads, by its card. Raises CommandError where it has no labels or reads other rows."""
        if self.labels and self.pair:
            raise CommandError("--labels are for one text a row: leave out the columns of a pair")
        card = read_card(place.folder(self.model, self.task))
        if self.labels and card.kind not in ("embedding", "nli"):
            raise CommandError(
                f"--labels: {card.name} has its own, {', '.join(card.labels[:10])}: leave --labels or --model out"
            )
        if card.kind == "embedding" and not self.labels:
            raise CommandError(
                f"{card.name} has no labels: give yours with --labels a,b,c, or name a classifier "
                "(`heedful list` has them)"
            )
        of_pairs = card.kind in ("nli", "relatedness") and not self.labels
        if self.pair and not of_pairs:
            raise CommandError(
                f"{card.name} reads one text a row: name its column with --text-column"
            )
        first, second = (self.pair or PAIR) if of_pairs else (text, None)
        return Columns(first, labels, second, whole, "--label-column")


@dataclass(frozen=True, slots=True)
class Answerer:
    """A loaded model. It scores `given` labels with the help of `others`, which are keywords of `Model.classify`."""

    model: Model
    given: tuple[str, ...] = ()
    others: Mapping[str, Model] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        return self.model.card

    @property
    def labels(self) -> tuple[str, ...]:
        """None for relatedness, whose scores are from 1 to 5."""
        return self.given or self.card.labels

    @property
    def multi_label(self) -> bool:
        return self.card.multi_label and not self.given

    def scores(self, rows: Sequence[Row], name: str) -> tuple[Doubles, npt.NDArray[np.bool_]]:
        """Probabilities (N, C) of the labels, NaN where a text is blank; and which texts (N,) were cut.

        For relatedness C is 1. `name` is the file's, for messages. Raises BadInput.
        """
        read = [i for i, row in enumerate(rows) if all(text.strip() for text in row.texts)]
        found = np.full((len(rows), max(1, len(self.labels))), np.nan)
        cut = np.zeros(len(rows), bool)
        texts = [text for i in read for text in rows[i].texts]
        paths = [f"{name}:{rows[i].line}: the text" for i in read for _ in rows[i].texts]
        inputs = Inputs(texts, paths, texts_per_row=len(rows[0].texts))
        if read:
            try:
                found[read] = self._ask(inputs, truncate=False)
            except BadInput as error:
                if error.code != "input_too_long":
                    raise
                found[read] = self._ask(inputs, truncate=True)
                fits = self.model.fits(texts).reshape(len(read), -1)
                cut[read] = ~fits.all(axis=1)
        return found, cut

    def predicted(self, scores: Doubles) -> list[Any]:
        """The label of each row (N, C); None where it has no scores or the model abstains, a list where several fit."""
        if not self.labels:
            return [None] * len(scores)
        blank = np.isnan(scores[:, 0])
        filled = np.where(blank[:, None], 0, scores)
        labels = (
            [self.given[i] for i in filled.argmax(axis=1)]
            if self.given
            else self.model.chosen(filled)
        )
        return [None if empty else label for empty, label in zip(blank, labels, strict=True)]

    def _ask(self, inputs: Inputs, *, truncate: bool) -> Doubles:
        if self.given:
            texts = [str(text) for text in inputs.items]
            more: dict[str, Any] = {**self.others, "truncate": truncate}
            answers = self.model.classify(texts, self.given, **more)
            return np.array([[one.scores[label] for label in self.given] for one in answers])
        kind = self.card.kind
        task: Any = "classify" if kind == "classification" else kind
        method: Any = "relatedness" if kind == "relatedness" else "classify"
        answer = self.model.answer(Question(task, method, {"truncate": truncate}), inputs)
        return np.asarray(answer, np.float64).reshape(len(inputs), -1)


@contextmanager
def answering(asked: Asked, place: Place) -> Iterator[Answerer]:
    """Load what was asked for. Raises StartupError, BundleError."""
    with ExitStack() as opened:
        model = opened.enter_context(place.load(asked.model, asked.task))
        others: dict[str, Model] = {}
        if asked.labels and asked.model is None:
            others["nli"] = opened.enter_context(place.load(None, "nli"))
            if sentiment := place.sentiment():
                others["sentiment"] = opened.enter_context(place.load(sentiment, "classify"))
        yield Answerer(model, asked.labels, others)
