"""heedful.classify: labels of the caller's, by both of the shipped models that can compare them with a text."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from heedful.library.fitting_labels import FittingLabels
from heedful.library.load import bundle_folder, load
from heedful.library.model import Model

EMBEDDING, NLI = "ms-san-embed", "ms-san-nli"


def classify(texts: Iterable[str], labels: Sequence[str], **keywords: Any) -> list[FittingLabels]:
    """How well each of your `labels` fits each text, by cosine and entailment: what the service answers.

    The keywords are those of `Model.classify`. The two bundles are looked up as by `load`, and loaded once. Raises what
    `load` and `Model.classify` raise.
    """
    embedding, nli = (_loaded(bundle_folder(name)) for name in (EMBEDDING, NLI))
    return embedding.classify(texts, labels, nli=nli, **keywords)


@cache
def _loaded(folder: Path) -> Model:
    return load(folder)
