"""Labelled texts drawn from the datasets for `benchmarks.fit`, and a cache of vectors on disk."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.files.atomic import write_arrays
from heedful.text.arrays import Floats
from heedful.training import tasks
from tools.tasks import sst

tasks.add("tools.tasks")
TASKS = ("trec", "cr", "subj", "sst2", "sst5", "news", "r8", "yelp")
SIZES = ("8", "16", "64", "1000 rows")
"""Rows a class; the last is rows in all."""
TEST = 500
"""Rows of the test split, at most, chosen at random but always the same."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts and their labels."""

    texts: list[str]
    labels: list[str]


def read(name: str, data: Path) -> tuple[Texts, Texts]:
    """The rows to draw from, each text once, and the test rows without these texts. Raises DataMissing."""
    task = tasks.get(name)
    whole = {"sst2": sst.two, "sst5": sst.five}  # train holds phrases too, test does not
    train = sst.sentences("train", whole[name]) if name in whole else task.train[0].read
    pool = {row.texts[0]: task.labels[int(row.label)] for row in train(data)}
    rows = [row for row in task.test.read(data) if row.texts[0] not in pool]
    chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:TEST])
    test = [rows[i] for i in chosen]
    return (
        Texts(list(pool), list(pool.values())),
        Texts([row.texts[0] for row in test], [task.labels[int(row.label)] for row in test]),
    )


def draw(pool: Texts, size: str, number: int) -> Texts:
    """A number of rows of each class (all of a rarer one), or of all, at random."""
    order = np.random.default_rng(number).permutation(len(pool.texts)).tolist()
    if size.endswith("rows"):
        chosen = order[: int(size.split()[0])]
    else:
        places: dict[str, list[int]] = {}
        for i in order:
            places.setdefault(pool.labels[i], []).append(i)
        chosen = [i for label in sorted(places) for i in places[label][: int(size)]]
    return Texts([pool.texts[i] for i in chosen], [pool.labels[i] for i in chosen])


class VectorCache:
    """Vectors of texts, each computed once and stored in a file of `folder`."""

    def __init__(self, folder: Path, name: str, embed: Callable[[Sequence[str]], Floats]) -> None:
        self._file = folder / f"{name}.npz"
        self._embed = embed
        self._rows: dict[str, Floats] = {}
        if self._file.exists():
            with np.load(self._file) as archive:
                self._rows = dict(zip(archive["keys"].tolist(), archive["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(N, D)."""
        keys = [hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]
        missing = {
            key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows
        }
        if missing:
            vectors = self._embed(list(missing.values()))
            self._rows.update(zip(missing, vectors, strict=True))
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(
                self._file,
                keys=np.array(list(self._rows)),
                vectors=np.stack(list(self._rows.values())),
            )
        return np.stack([self._rows[key] for key in keys])
