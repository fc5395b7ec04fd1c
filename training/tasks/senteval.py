"""The layout of CR, MPQA and SUBJ: one file of sentences per label, or JSON lines."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from heedful.training.data_folder import find
from heedful.training.tasks import nli, sst
from heedful.training.tasks.base import Example
from heedful.training.tasks.labelled import examples, json_lines, one_label

BACKGROUND = (nli.MNLI_TRAIN, nli.SNLI_TRAIN, sst.REVIEWS)


def by_label(data: Path, name: str, files: Mapping[str, str], encoding: str) -> list[Example]:
    """The sentences of `files`, one file for each label in the task's order, or of `<name>/all.jsonl`.

    Raises DataMissing, DataError.
    """
    labels = tuple(files)
    first, *others = files.items()
    path = find(data, (first[1], f"{name}/all.jsonl"), dataset=name)
    if ".jsonl" in path.name:
        return examples(path, json_lines(path), labels)
    paths = [(first[0], path)]
    paths += [(label, find(data, (file,), dataset=name)) for label, file in others]
    rows = chain.from_iterable(one_label(file, label, encoding) for label, file in paths)
    return examples(path, rows, labels)
