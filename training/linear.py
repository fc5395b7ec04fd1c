"""Linear classifiers over words (TF-IDF), over a frozen encoder's vectors, and over both."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from heedful.text.arrays import Doubles, Floats, Ints
from heedful.training.bag import Bag
from heedful.training.soft_logistic import probabilities, soft_logistic

ClassWeight = Literal["balanced"] | None
TeacherKind = Literal["frozen", "fine-tuned"]
VECTOR_SCALE = 1.5
"""Root mean square length of the centred vectors; TF-IDF rows have about length 1."""
ABSENT = -30.0
"""The logit of a class without a row in training."""
STRENGTHS = (1.0, 10.0)
"""The values of the inverse regularisation C to try."""
TAUGHT_STRENGTH: dict[TeacherKind, float] = {"frozen": 1.0, "fine-tuned": 3.0}
"""C of a model with a teacher (docs/notes/fit.md)."""


@dataclass(frozen=True, slots=True)
class Texts:
    """N texts as a linear model reads them."""

    keys: Sequence[Ints]  # training.bag.word_keys of each
    vectors: Floats  # (N, D) of length 1

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, rows: Ints) -> "Texts":
        return Texts([self.keys[i] for i in rows], self.vectors[rows])

    def __add__(self, more: "Texts") -> "Texts":
        return Texts([*self.keys, *more.keys], np.concatenate([self.vectors, more.vectors]))


@dataclass(frozen=True, slots=True)
class Recipe:
    """The features of a linear model and its regularisation."""

    words: bool
    vectors: bool
    strength: float
    class_weight: ClassWeight = None
    multi_label: bool = False
    teacher: TeacherKind | None = None
    """The teacher whose answers to texts without labels it also learns from: training.pseudo_labels."""

    @property
    def name(self) -> str:
        reads = " + ".join(["TF-IDF"] * self.words + ["frozen vectors"] * self.vectors + ["LR"])
        return f"{reads}, taught by the {self.teacher} teacher" if self.teacher else reads


def recipes(
    class_weight: ClassWeight, *, multi_label: bool, teachers: Iterable[TeacherKind] = ()
) -> list[Recipe]:
    """Words, vectors, and both, with each strength; then both with each teacher."""
    untaught = [
        Recipe(words, vectors, strength, class_weight, multi_label)
        for words, vectors in ((True, False), (False, True), (True, True))
        for strength in STRENGTHS
    ]
    taught = [
        Recipe(True, True, TAUGHT_STRENGTH[teacher], class_weight, multi_label, teacher)
        for teacher in teachers
    ]
    return untaught + taught


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights of C classes: of words (buckets, C), if it reads any, and of vectors (C, D), with intercepts (C,)."""

    recipe: Recipe
    bag: Bag | None
    words: Doubles
    coefficients: Doubles
    intercepts: Doubles
    temperature: float = 1.0
    """Divides the logits."""

    @classmethod
    def fit(cls, recipe: Recipe, texts: Texts, targets: npt.NDArray[np.bool_] | Doubles) -> Self:
        """Fit to the texts and their classes (N, C), or the classes' probabilities (N, C)."""
        classes = targets.shape[1]
        bag = Bag.fit(texts.keys, classes=classes) if recipe.words else None
        mean = texts.vectors.mean(axis=0, dtype=np.float64)
        centred = texts.vectors - mean
        scale = VECTOR_SCALE / max(float(np.sqrt((centred**2).sum(axis=1).mean())), 1e-6)
        parts: list[Any] = []
        used = np.zeros(0, np.int64)
        if bag:
            features = bag.features(texts.keys)
            used, text_counts = np.unique(features.indices, return_counts=True)
            if targets.dtype != bool:
                # A quarter of the buckets, and as good: docs/notes/fit.md.
                used = used[text_counts > 1]
            parts.append(features[:, used])
        if recipe.vectors:
            parts.append(centred * scale)
        weights, intercepts = _logistic(parts, targets, recipe)
        words = np.zeros((len(bag.idf) if bag else 0, classes))
        if bag:  # rounded as a graph stores them
            idf = bag.idf[used, None]
            words[used] = (weights[:, : len(used)].T * idf).astype(np.float16) / idf
        coefficients = np.zeros((classes, texts.vectors.shape[1]))
        if recipe.vectors:
            coefficients = weights[:, len(used) :] * scale
        return cls(recipe, bag, words, coefficients, intercepts - coefficients @ mean)

    def logits(self, texts: Texts) -> Doubles:
        """(N, C)."""
        logits: Doubles = texts.vectors.astype(np.float64) @ self.coefficients.T + self.intercepts
        if self.bag:
            logits = logits + self.bag.features(texts.keys) @ self.words
        return logits / self.temperature

    def probabilities(self, texts: Texts) -> Doubles:
        """(N, C)."""
        return probabilities(self.logits(texts), multi_label=self.recipe.multi_label)


def _logistic(
    parts: Sequence[Any], targets: npt.NDArray[np.bool_] | Doubles, recipe: Recipe
) -> tuple[Doubles, Doubles]:
    """Weights (C, F) and intercepts (C,): one softmax, or a sigmoid for each of several labels.

    `parts` are the features' matrices, with N rows and F columns in all.
    """
    if targets.dtype != bool:
        soft = targets.astype(np.float64)
        balanced = recipe.class_weight == "balanced"
        return soft_logistic(
            parts, soft, recipe.strength, multi_label=recipe.multi_label, balanced=balanced
        )
    features = sparse.hstack([sparse.csr_matrix(part) for part in parts]).tocsr()
    classes = targets.shape[1]
    weights, intercepts = np.zeros((classes, features.shape[1])), np.full(classes, ABSENT)
    columns = targets.T if recipe.multi_label else [targets.argmax(axis=1)]
    for number, labels in enumerate(columns):
        if len(np.unique(labels)) == 1:
            if labels[0] or not recipe.multi_label:
                intercepts[number if recipe.multi_label else labels[0]] = -ABSENT
            continue
        model = LogisticRegression(
            C=recipe.strength, max_iter=300, tol=1e-3, class_weight=recipe.class_weight
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            model.fit(features, labels)
        if recipe.multi_label:
            weights[number], intercepts[number] = model.coef_[0], model.intercept_[0]
        elif len(model.classes_) == 2:  # scikit-learn gives one logit, of the second class
            first, second = model.classes_
            weights[second], intercepts[second] = model.coef_[0], model.intercept_[0]
            intercepts[first] = 0.0
        else:
            weights[model.classes_], intercepts[model.classes_] = model.coef_, model.intercept_
    return weights, intercepts
