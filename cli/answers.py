"""Labels and scores of the rows of a user's file, by a loaded model: what `predict` and `evaluate` share."""

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
class ModelChoice:
    """The options that choose a model: its name or folder, the user's labels (zero-shot), the two columns of pairs."""

    model: str | None = None
    labels: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None

    @classmethod
    def of(
        cls, model: str | None, labels: str, premise: str | None, hypothesis: str | None
    ) -> "ModelChoice":
        """Parse the options of the command line; `labels` has commas between."""
        names = tuple(label.strip() for label in labels.split(",") if label.strip())
        pair = (premise or PAIR[0], hypothesis or PAIR[1]) if premise or hypothesis else None
        return cls(model, names, pair)

    @property
    def task(self) -> Task:
        """The task whose default model is loaded where none is named."""
        return "embed" if self.labels else "nli" if self.pair else "classify"

    def columns(
        self, place: Place, text: str, *, labels: str | None = None, all_columns: bool = False
    ) -> Columns:
        """The columns that the model reads, by its card. Raises CommandError for options that do not fit it."""
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
        reads_pairs = card.kind in ("nli", "relatedness") and not self.labels
        if self.pair and not reads_pairs:
            raise CommandError(
                f"{card.name} reads one text a row: name its column with --text-column"
            )
        first, second = (self.pair or PAIR) if reads_pairs else (text, None)
        return Columns(first, labels, second, all_columns, "--label-column")


@dataclass(frozen=True, slots=True)
class Answerer:
    """A loaded model. `zero_shot` labels are scored with the help of `helpers`, keywords of `Model.classify`."""

    model: Model
    zero_shot: tuple[str, ...] = ()
    helpers: Mapping[str, Model] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        return self.model.card

    @property
    def labels(self) -> tuple[str, ...]:
        """Empty for relatedness, whose scores are from 1 to 5."""
        return self.zero_shot or self.card.labels

    @property
    def multi_label(self) -> bool:
        return self.card.multi_label and not self.zero_shot

    def scores(self, rows: Sequence[Row], name: str) -> tuple[Doubles, npt.NDArray[np.bool_]]:
        """Probabilities (N, C) of the labels, NaN for a row with a blank text; and which rows (N,) had a text cut.

        For relatedness C is 1. `name` is the file's, for messages. Raises BadInput.
        """
        filled = [i for i, row in enumerate(rows) if all(text.strip() for text in row.texts)]
        scores = np.full((len(rows), max(1, len(self.labels))), np.nan)
        cut = np.zeros(len(rows), bool)
        texts = [text for i in filled for text in rows[i].texts]
        paths = [f"{name}:{rows[i].line}: the text" for i in filled for _ in rows[i].texts]
        inputs = Inputs(texts, paths, texts_per_row=len(rows[0].texts))
        if filled:
            try:
                scores[filled] = self._score(inputs, truncate=False)
            except BadInput as error:
                if error.code != "input_too_long":
                    raise
                scores[filled] = self._score(inputs, truncate=True)
                fits = self.model.fits(texts).reshape(len(filled), -1)
                cut[filled] = ~fits.all(axis=1)
        return scores, cut

    def predicted(self, scores: Doubles) -> list[Any]:
        """The label of each row of scores (N, C): None for NaN or where the model abstains, a list if multi-label."""
        if not self.labels:
            return [None] * len(scores)
        blank = np.isnan(scores[:, 0])
        filled = np.where(blank[:, None], 0, scores)
        labels = (
            [self.zero_shot[i] for i in filled.argmax(axis=1)]
            if self.zero_shot
            else self.model.chosen(filled)
        )
        return [None if empty else label for empty, label in zip(blank, labels, strict=True)]

    def _score(self, inputs: Inputs, *, truncate: bool) -> Doubles:
        if self.zero_shot:
            texts = [str(text) for text in inputs.items]
            options: dict[str, Any] = {**self.helpers, "truncate": truncate}
            answers = self.model.classify(texts, self.zero_shot, **options)
            return np.array([[row.scores[label] for label in self.zero_shot] for row in answers])
        task: Any = {"classification": "classify"}.get(self.card.kind, self.card.kind)
        answer = self.model.answer(Question(task, {"truncate": truncate}), inputs)
        return np.asarray(answer, np.float64).reshape(len(inputs), -1)


@contextmanager
def loaded_answerer(choice: ModelChoice, place: Place) -> Iterator[Answerer]:
    """Load the model, and for labels without a named model its helpers too. Raises StartupError, BundleError."""
    with ExitStack() as models:
        model = models.enter_context(place.load(choice.model, choice.task))
        helpers: dict[str, Model] = {}
        if choice.labels and choice.model is None:
            helpers["nli"] = models.enter_context(place.load(None, "nli"))
            if sentiment := place.sentiment():
                helpers["sentiment"] = models.enter_context(place.load(sentiment, "classify"))
        yield Answerer(model, choice.labels, helpers)
