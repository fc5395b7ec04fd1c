"""Evaluation of frozen sentence vectors by logistic regression.

As in SentEval (Conneau and Kiela 2018): CR, MPQA and SUBJ in ten folds, TREC and SST-2 on their test
splits, regularisation chosen on held-out rows. SST-2 is trained on whole sentences.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

from heedful.text.arrays import Floats
from heedful.training import tasks
from heedful.training.data import labels
from heedful.training.similarity import Embed, unit_vectors
from heedful.training.tasks.base import Example
from tools.tasks import sst
from tools.tasks.senteval import CR, MPQA, SUBJ

STRENGTHS = (1.0, 4.0, 16.0, 64.0)
"""Inverse regularisation C; the vectors have length 1."""
SEED = 1
FOLDS = 10
FOLDED = {each.name: each.read for each in (CR, MPQA, SUBJ)}


def accuracies(embed: Embed, data: Path, split: str = "test") -> dict[str, float]:
    """Accuracy of each classification task; TREC's and SST-2's on `split`. Raises DataMissing."""
    scores = {name: _ten_folds(embed, read(data)) for name, read in FOLDED.items()}
    trec = tasks.get("trec")
    judged = {"dev": trec.dev, "test": trec.test}[split].read(data)
    scores["trec"] = _split(embed, trec.train[0].read(data), trec.dev.read(data), judged)
    train, dev, judged = (sst.sentences(part, sst.two)(data) for part in ("train", "dev", split))
    scores["sst2"] = _split(embed, train, dev, judged)
    return scores


def _ten_folds(embed: Embed, examples: Sequence[Example]) -> float:
    vectors, gold = _vectors(embed, examples), labels(examples)
    right = 0
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(vectors, gold):
        fitted_on, dev = train_test_split(
            train, test_size=0.1, stratify=gold[train], random_state=SEED
        )
        best = _best((vectors[fitted_on], gold[fitted_on]), (vectors[dev], gold[dev]))
        fitted = _fit(vectors[train], gold[train], best)
        right += int((fitted.predict(vectors[test]) == gold[test]).sum())
    return right / len(examples)


def _split(
    embed: Embed, train: Sequence[Example], dev: Sequence[Example], test: Sequence[Example]
) -> float:
    rows = [(_vectors(embed, part), labels(part)) for part in (train, dev, test)]
    fitted = _fit(*rows[0], _best(rows[0], rows[1]))
    return float(fitted.score(*rows[2]))


def _best(train: tuple[Floats, Any], dev: tuple[Floats, Any]) -> float:
    """The strength with the best dev score, the smallest of equal ones."""
    return max(STRENGTHS, key=lambda strength: _fit(*train, strength).score(*dev))


def _fit(vectors: Floats, gold: Any, strength: float) -> Any:
    return LogisticRegression(C=strength, max_iter=1000).fit(vectors, gold)


def _vectors(embed: Embed, examples: Sequence[Example]) -> Floats:
    return unit_vectors(embed, [example.texts[0] for example in examples])
