"""scikit-learn estimators over a bundle's frozen encoder; `heedful.sklearn` exports them."""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.base import ClassNamePrefixFeaturesOutMixin as PrefixMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from heedful.files.labels import spelled
from heedful.files.rows import SURROGATE
from heedful.library.inputs import is_missing, text_inputs
from heedful.library.load import shared
from heedful.library.model import Model
from heedful.runtime.bundles.bundle import read, read_card
from heedful.runtime.bundles.card import CARD, Card, DataCard
from heedful.runtime.errors import BadInput, BundleError
from heedful.text.arrays import Doubles, Floats
from heedful.text.invisible import is_blank, without_invisible

Labels = npt.NDArray[Any]


@dataclass(eq=False, repr=False)
class _BundleEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The parameters that name the bundle; those of `heedful.load`."""

    model: str | Path = "ms-san-embed"
    _: KW_ONLY
    models: str | Path | None = None
    parser: str | Path | None = None

    @property
    def model_(self) -> Model:
        """The loaded bundle, which all estimators of it share: do not close it."""
        return shared(self.model, self.models, self.parser)

    def _encode(self, texts: Iterable[str]) -> Floats:
        return self.model_.encode(_texts(texts))

    def _begin_fit(self) -> None:
        """Load the bundle, again if it has been replaced, and record its version."""
        if read_card(self.model_.folder).version != self.model_.card.version:
            shared.cache_clear()
        self.version_ = self.model_.card.version

    def _check_version(self, card: Card) -> None:
        """Raise BundleError where the bundle is not the one of `fit`: an estimator only holds its name."""
        if card.version != self.version_:
            fitted = f"{type(self).__name__} was fitted on {self.version_}"
            raise BundleError(card.name, CARD, f"is version {card.version}, {fitted}: fit it again")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class SentenceEncoder(PrefixMixin, TransformerMixin, _BundleEstimator):  # type: ignore[misc]
    """Texts (N,) -> vectors (N, D) of length 1, by the bundle `model`. There is nothing to fit.

    A fitted encoder, as in a pipeline, raises BundleError if another bundle has replaced `model` since.
    """

    def fit(self, X: Iterable[str], y: object = None) -> Self:  # noqa: ARG002  # scikit-learn gives y
        """Check the texts and load the bundle."""
        _texts(X)
        self._begin_fit()
        return self

    def fit_transform(self, X: Iterable[str], y: object = None) -> Floats:  # noqa: ARG002
        """`fit` and `transform`, which would need the texts of an iterator twice."""
        self._begin_fit()
        return self.transform(X)

    def transform(self, X: Iterable[str]) -> Floats:
        """Vectors (N, D). Raises BadInput for a blank text."""
        if hasattr(self, "version_"):
            self._check_version(self.model_.card)
        return self._encode(X)

    @property
    def _n_features_out(self) -> int:
        """The number of names that `get_feature_names_out` returns."""
        return self.model_.card.dimension

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@dataclass(eq=False, repr=False)
class HeedfulClassifier(ClassifierMixin, _BundleEstimator):  # type: ignore[misc]
    """Logistic regression on the frozen vectors of the bundle `model`.

    `C` and `class_weight` are those of scikit-learn's LogisticRegression. Of two classes, the second is predicted if
    its probability is `threshold` or more; of several classes the most probable is, and `threshold` must be 0.5.
    """

    _: KW_ONLY
    C: float = 10.0
    class_weight: Mapping[Any, float] | str | None = None
    threshold: float = 0.5
    random_state: int | np.random.RandomState | None = None

    def fit(
        self, X: Iterable[str], y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train the linear head on texts (N,), their labels (N,) and weights (N,), by default 1.

        Raises ValueError for wrong texts, labels or parameters, such as labels of one class.

        All other methods raise BundleError if another bundle has replaced `model` since.
        """
        if y is None:
            raise ValueError("y is None: give a label for each text")
        texts, labels = _texts(X), column_or_1d(y, warn=True)
        if len(texts) != len(labels):
            raise ValueError(f"{len(texts)} texts and {len(labels)} labels: give one for each")
        for i, label in enumerate(labels):
            if is_missing(label):
                raise ValueError(f"y[{i}] is missing: leave the row out")
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"all labels are {self.classes_.tolist()[0]!r}: give texts of two classes"
            )
        if len(self.classes_) > 2 and self.threshold != 0.5:
            raise ValueError("threshold is for two classes: leave it at 0.5")
        if not 0 < self.threshold < 1:
            raise ValueError(f"threshold is {self.threshold}: it must lie between 0 and 1")
        self._begin_fit()
        self.head_ = LogisticRegression(
            C=self.C, class_weight=self.class_weight, max_iter=1000, random_state=self.random_state
        ).fit(self._encode(texts), labels, sample_weight)
        self.n_rows_ = len(texts)
        return self

    def predict_proba(self, X: Iterable[str]) -> Doubles:
        """Probabilities (N, C), in the order of `classes_`."""
        self._check_fitted()
        probabilities: Doubles = self.head_.predict_proba(self._encode(X))
        return probabilities

    def decision_function(self, X: Iterable[str]) -> Doubles:
        """Logits (N, C); of two classes (N,), the second's."""
        self._check_fitted()
        logits: Doubles = self.head_.decision_function(self._encode(X))
        return logits

    def predict(self, X: Iterable[str]) -> Labels:
        """Labels (N,)."""
        scores = self.predict_proba(X)
        binary = len(self.classes_) == 2
        indices = (scores[:, 1] >= self.threshold).astype(int) if binary else scores.argmax(axis=1)
        labels: Labels = self.classes_[indices]
        return labels

    def save(self, out: str | Path, *, task: str | None = None, data: str = "") -> Card:
        """Write a bundle that `heedful serve` serves, and return its card.

        The folder's name is the model's. `task` is by default the last part of the name, `data` describes the texts.
        The bundle predicts what this classifier predicts: a `threshold` other than 0.5 shifts its probabilities. It
        replaces a bundle in `out`. Raises BundleError where the result would not load, where `out` is the bundle
        `model`, and where it holds something that is no bundle; BadInput for a name that no bundle may have and for
        labels that look alike.
        """
        try:
            from heedful.export.linear_head import LinearHead, Provenance, write_bundle
        except ModuleNotFoundError as error:
            if error.name != "onnx":
                raise
            raise ModuleNotFoundError(
                "save needs the extra sklearn: pip install 'heedful[sklearn]'", name=error.name
            ) from None
        self._check_fitted()
        out = Path(out)
        if not re.fullmatch("[a-z0-9-]+", out.name):
            raise BadInput(f"{out.name!r} names no bundle: use a-z, 0-9 and -", param="out")
        labels = self._labels()
        if len(labels) > 2:
            head = LinearHead(self.head_.coef_, self.head_.intercept_, labels, normalize=True)
        else:
            shift = np.log(self.threshold / (1 - self.threshold))
            weights, bias = self.head_.coef_[0], self.head_.intercept_[0] - shift
            head = LinearHead.binary(weights, bias, (labels[0], labels[1]), normalize=True)
        if out.resolve() == self.model_.folder:
            reason = "is that of the model that the classifier uses: save into another folder"
            raise BundleError(out.name, CARD, reason)
        seed = self.random_state
        provenance = Provenance(
            task=task or out.name.rpartition("-")[2],
            data=DataCard(
                name=data or "texts given to HeedfulClassifier",
                rows=self.n_rows_,
                licence="not stated",
                note="",
            ),
            command=shlex.join(sys.argv),
            seed=int(seed) if isinstance(seed, Integral) else 0,  # a RandomState has none
        )
        base = read(self.model_.folder)
        self._check_version(base.card)  # the bundle may have been replaced since it was loaded
        return write_bundle(base, head, provenance, out)

    def _check_fitted(self) -> None:
        check_is_fitted(self)
        self._check_version(self.model_.card)

    def _labels(self) -> tuple[str, ...]:
        """The classes as a bundle stores them. Raises BadInput for labels that are blank, look alike, or hold a NUL."""
        labels = tuple(spelled(str(label)) for label in self.classes_.tolist())
        visible = [without_invisible(label) for label in labels]
        for original, label, shown in zip(self.classes_.tolist(), labels, visible, strict=True):
            reason = ""
            if is_blank(label):
                reason = "is blank"
            elif visible.count(shown) > 1:
                reason = f"reads {shown!r}, as another label does"
            elif SURROGATE.search(label) or "\0" in label:
                reason = "holds half of a surrogate pair or a NUL"
            if reason:
                raise BadInput(f"the label {original!r} {reason}: give it another name", param="y")
        return labels


def _texts(texts: Iterable[str]) -> list[str]:
    """The strings of a list, array or column.

    Raises ValueError for anything else, and BadInput for a text that is blank or no valid Unicode.
    """
    try:
        inputs = text_inputs(texts, "X")
    except BadInput as error:  # scikit-learn's own checks expect ValueError
        raise ValueError(str(error)) from None
    if not inputs.items:
        raise ValueError("X is empty: give at least one text")
    inputs.check_texts()
    return cast(list[str], inputs.items)
