"""Files of labelled texts -> examples."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from heedful.training.data_folder import lines, read_each, records, text_of
from heedful.training.errors import DataError
from heedful.training.tasks.base import Example, Reader
from tools.tasks.splits import stratified_split

UNSTATED = "no licence stated with the data"


def json_lines(path: Path) -> Iterator[tuple[str, str]]:
    """(label, text) of each `{"text", "label"}`. Raises DataError."""
    return read_each(path, records(path), lambda row: (str(row["label"]), text_of(row, "text")))


def label_first(path: Path, separator: str, encoding: str = "utf-8") -> Iterator[tuple[str, str]]:
    """(label, text) of each line `label<separator>text`."""
    for line in lines(path, encoding):
        label, _, text = line.partition(separator)
        yield label, text


def examples(
    path: Path,
    rows: Iterable[tuple[str, str]],
    labels: tuple[str, ...],
    codes: Mapping[str, str] = MappingProxyType({}),
) -> list[Example]:
    """The rows of `path` with labels numbered as in `labels`; empty texts are left out.

    `codes` gives the label of each code of the data set. Raises DataError naming the first row with another label.
    """
    labelled = []
    for number, (code, text) in enumerate(rows, 1):
        label = codes.get(code, code)
        if label not in labels:
            known = ", ".join(codes or labels)
            raise DataError(f"{path.name}:{number}: label {label!r} is none of {known}")
        if text.strip():
            labelled.append(Example((text.strip(),), labels.index(label)))
    return labelled


def held_out(read: Reader, share: float) -> tuple[Reader, Reader]:
    """Readers of train and dev, where dev is this share of the examples."""

    def train(data: Path) -> list[Example]:
        return stratified_split(read(data), (share,))[1]

    def dev(data: Path) -> list[Example]:
        return stratified_split(read(data), (share,))[0]

    return train, dev
