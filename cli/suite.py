"""All scores of one bundle, or of all-MiniLM-L6-v2, as `heedful evaluate --suite` prints and stores them."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from heedful.cli.local_model import LocalModel, open_folder
from heedful.export.word_means import word_means
from heedful.files.atomic import write_json
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import CARD
from heedful.text.kinds import NLI_LABELS
from heedful.training import minilm, tasks
from heedful.training.calibration import Numbers
from heedful.training.errors import ConfigError
from heedful.training.evaluate import measure
from heedful.training.suite import (
    NLI,
    POLARITY,
    WORDS,
    Figure,
    Split,
    embedded,
    labelled,
    polarised,
)
from heedful.training.tasks.base import Example


def record(
    model: str, results: Path, *, split: Split, rows: int | None, data: Path, parser: str | None
) -> Iterator[str]:
    """The figures as lines of text, as they are measured; `results/suite/<model>.json` holds them in the end.

    With `rows`, which takes a part of each set, nothing is written. Raises ConfigError for a model that is
    no bundle's folder, DataMissing.
    """
    if model != minilm.NAME and not (Path(model) / CARD).is_file():
        raise ConfigError(f"{model} is no bundle's folder: name one, such as bundles/ms-san-nli")
    with nullcontext() if model == minilm.NAME else open_folder(Path(model), parser) as local:
        figures = []
        for one in _figures(model, local, split=split, rows=rows, data=data):
            figures.append(one)
            yield _line(one)
        if rows is not None:
            return
        name = minilm.NAME if local is None else local.card.name
        version = "" if local is None else local.card.version
        suffix = "" if split == "dev" else f"-{split}"
        file = results / "suite" / f"{name}{suffix}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        found = {"model": name, "version": version, "split": split}
        write_json(file, found | {"figures": [asdict(one) for one in figures]})


def _line(one: Figure) -> str:
    rows = "" if one.rows is None else f" ({one.rows} rows)"
    return f"{one.dataset}: {one.metric} {one.value:.4f}{rows}"


def _figures(
    model: str, local: LocalModel | None, *, split: Split, rows: int | None, data: Path
) -> Iterator[Figure]:
    if local is None:
        loaded = minilm.load()
        return embedded(lambda texts: minilm.mean_vectors(loaded, texts), data, split, rows)
    card = local.card
    if card.kind == "embedding":
        words = word_means(read(Path(model)))
        below = embedded(words, data, split, rows)
        named = (Figure(WORDS + one.dataset, one.metric, one.value, one.rows) for one in below)
        return chain(embedded(local.embed, data, split, rows), named)
    task = tasks.get(card.task)
    if card.kind == "relatedness":
        found = measure(task, split, data, local)
        return (Figure(one.dataset, one.metric, one.value, one.rows) for one in found)
    order = NLI_LABELS if card.kind == "nli" else task.labels
    own = {task.name: (task.dev if split == "dev" else task.test).read}
    sets = NLI[split] if card.kind == "nli" else own

    def logits(examples: Sequence[Example]) -> Numbers:
        return local.ordered_logits(examples, order)

    return chain(
        labelled(sets, data, logits, temperature=card.temperature, rows=rows),
        polarised(POLARITY[split], data, logits, order, rows),
    )
