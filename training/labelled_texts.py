"""A user's labelled texts: a table, JSON lines or a folder, validated before training starts."""

import gzip
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from heedful.files.labels import spelled
from heedful.files.rows import SEPARATORS, Format, Rows, similar
from heedful.files.tabs import Line
from heedful.text.invisible import is_blank, without_invisible
from heedful.training.errors import DataError

FORMATS: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl"}
FRAMES: dict[str, tuple[str, dict[str, Any]]] = {
    ".parquet": ("read_parquet", {"dtype_backend": "numpy_nullable"}),
    ".xlsx": ("read_excel", {"dtype": str, "keep_default_na": False, "header": None}),
}
"""Suffix -> the function of pandas that reads it, and its keywords: a number next to an empty cell stays as written, a
word like "None" or "n/a" is a text, and the second of two equal names in a header is not renamed."""
OPTIONS = "--text-column (or --pair-columns) and --label-column"
INSTEAD_OF_LIST = "; several labels are one string: set --multi-label to what separates them"
OTHER_ENCODING = ", or set --encoding cp1252, Excel's on Windows"
GZIPPED = ".gz"
MAX_NAMED = 5
"""Lines, or labels, listed in one message."""
_AMOUNT = re.compile(r"[^\w\s]?\s?[-+]?[.,]?\d[\d.,]*(e[-+]?\d+)?\s?([^\w\s]|[A-Z]{3})?")
MOST_NUMBERS = 20
"""Labels that are numbers, such as stars or marks; more are a quantity."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled text, or a pair of texts, and the line where it begins; of parquet, the row, from 1."""

    line: int
    texts: tuple[str, ...]
    label: str  # several labels are sorted and joined by the separator

    def labels(self, separator: str) -> list[str]:
        return self.label.split(separator) if separator else [self.label]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read. Without an `encoding` it is UTF-8; without a `delimiter` the first line suggests it."""

    encoding: str = ""
    delimiter: str = ""
    header: bool = True
    """Whether the first row names the columns; otherwise they are 1, 2, .."""
    drop_blank: bool = False
    """Leave out rows without a text or a label."""
    drop_conflicts: bool = False
    """Leave out equal texts of different labels."""
    separator: str = ""
    """Between several labels in one cell; "" where a row has one label."""
    say: Callable[[str], None] = print
    """Prints what is left out."""


def read(
    path: Path, columns: Sequence[str], label_column: str, reading: Reading | None = None
) -> list[Row]:
    """The rows of the file: texts from `columns`, in that order.

    A folder holds one file a text, in a folder of the label's name. Raises DataError with all faults, each with line
    and remedy: another suffix or encoding, no such column, a cell too few or too many, an unbalanced quote, not JSON,
    an empty cell, one label only, a label of one text, equal texts of different labels, numbers for labels.
    """
    reading = reading or Reading()
    rows, faults = _rows(path, columns, label_column, reading)
    if rows:
        faults += _label_faults(path, rows, label_column, reading)
    _raise_faults(path, faults)
    labels = {label for row in rows for label in row.labels(reading.separator)}
    for lookalikes in _lookalikes(labels):
        names = " and ".join(map(repr, lookalikes))
        reading.say(
            f"{path.name}: {names} are different labels: spell them the same if they are not"
        )
    return rows


def read_rows(path: Path, columns: Sequence[str], label_column: str, reading: Reading) -> list[Row]:
    """`read` without the checks that need every label of a training file. Raises DataError."""
    rows, faults = _rows(path, columns, label_column, reading)
    _raise_faults(path, faults)
    return rows


def _raise_faults(path: Path, faults: Sequence[str]) -> None:
    """Raise DataError with all faults, if there are any."""
    if len(faults) == 1:
        raise DataError(faults[0])
    if faults:
        raise DataError("\n- ".join([f"{path.name}: {len(faults)} faults:", *faults]))


def _rows(
    path: Path, columns: Sequence[str], label_column: str, reading: Reading
) -> tuple[list[Row], list[str]]:
    """The rows that can be used, and the faults of the others. Raises DataError for a file without a row."""
    faults: list[str] = []
    try:
        lines = (
            _folder(path, reading)
            if path.is_dir()
            else _lines(path, (*columns, label_column), reading, faults)
        )
        rows = [
            Row(line, tuple(texts), _labels(label, reading.separator))
            for line, (*texts, label) in lines
        ]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(faults) > MAX_NAMED:
        faults = [
            *faults[:MAX_NAMED],
            f"and {len(faults) - MAX_NAMED} rows more that cannot be read",
        ]
    rows = _without_blanks(path, rows, (*columns, label_column), reading, faults)
    if not rows and not faults:
        raise DataError(f"{path.name} holds no row: give it labelled texts")
    for row in rows:
        if any("\0" in text for text in (*row.texts, row.label)):
            faults.append(f"{_place(path, row.line)}: holds a NUL: remove it")
    return _without_conflicts(path, rows, reading, faults), faults


def read_texts(path: Path, column: str, reading: Reading) -> list[str]:
    """The distinct texts of a file without labels; blank ones are left out. Raises DataError."""
    try:
        cells = [cell for _, (cell,) in _lines(path, (column,), reading, None)]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    texts = {text_key((cell,)): cell for cell in cells if not is_blank(cell) and "\0" not in cell}
    return list(texts.values())


def _labels(cell: str, separator: str) -> str:
    if not separator:
        return _label(cell)
    return separator.join(sorted({_label(part) for part in cell.split(separator)} - {""}))


def _label(cell: str) -> str:
    return "" if is_blank(cell) else spelled(cell)


def _folder(path: Path, reading: Reading) -> Iterable[Line]:
    """The number, the text and the label of each of `_files`."""
    files, encoding = _files(path), reading.encoding
    unread = sum(map(_is_text, path.rglob("*"))) - len(files)
    if unread:
        reading.say(
            f"{path.name}: {unread} files are not read: they are not directly in a folder of a label's name"
        )
    if not files:
        raise DataError(
            f"{path} holds no text: put one file a text into a folder of its label's name"
        )
    for number, file in enumerate(files, 1):
        try:
            yield number, [file.read_text(encoding or "utf-8-sig"), file.parent.name]
        except LookupError as error:
            raise _misfit(file, encoding, error) from error
        except UnicodeDecodeError as error:
            if encoding:
                raise _misfit(file, encoding, error) from error
            message = f"{file}: byte {error.start} is not UTF-8: save it as UTF-8{OTHER_ENCODING}"
            raise DataError(message) from error


def _files(path: Path) -> list[Path]:
    """The files `path`/<label>/<any name>, in order of their names.

    Hidden files and folders are neither texts nor labels: macOS writes .DS_Store, Jupyter .ipynb_checkpoints.
    """
    return sorted(filter(_is_text, path.glob("*/*")))


def _is_text(file: Path) -> bool:
    return file.is_file() and not any(name.startswith(".") for name in file.parts[-2:])


def _misfit(file: Path | str, encoding: str, error: Exception) -> DataError:
    """The error for a file that does not have the encoding of --encoding, or for an unknown encoding."""
    return DataError(
        f"{file}: --encoding {encoding} does not fit: {error}; cp1252 is Excel's, utf-16 that of its Unicode text"
    )


def _lines(
    path: Path, columns: Sequence[str], reading: Reading, faults: list[str] | None
) -> Iterable[Line]:
    if path.suffix.lower() in FRAMES:
        return _frame(path, columns, reading)
    name = path.name.lower()
    format = FORMATS.get(Path(name.removesuffix(GZIPPED)).suffix)
    if format is None:
        known = ", ".join([*FORMATS, *FRAMES])
        raise DataError(
            f"{path.name}: the file's suffix names its format: give it one of {known} "
            f"(the first three also with {GZIPPED})"
        )
    content = path.read_bytes()
    if name.endswith(GZIPPED):
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"{path.name} is a damaged or incomplete gzip file ({error}): copy it again"
            ) from error
    if reading.encoding:
        try:
            content = content.decode(reading.encoding).encode()
        except (LookupError, UnicodeDecodeError) as error:
            raise _misfit(path.name, reading.encoding, error) from error
    return Rows(
        BytesIO(content),
        path.name,
        format,
        columns,
        DataError,
        integers=True,
        list_remedy=INSTEAD_OF_LIST,
        option=_other_columns(format, reading),
        encoding_remedy=OTHER_ENCODING,
        separator=reading.delimiter,
        header=reading.header,
        faults=faults,
    )


def _other_columns(format: Format, reading: Reading) -> str:
    """The remedy for a missing column."""
    if format not in SEPARATORS:
        return OPTIONS
    if not reading.header:
        return f"{OPTIONS} to some of these numbers"
    return f"{OPTIONS}, or --no-header and name the columns 1, 2, .."


def _frame(path: Path, columns: Sequence[str], reading: Reading) -> Iterable[Line]:
    """The rows of a .parquet file, or of the first sheet of an .xlsx file, which alone may lack a header."""
    suffix = path.suffix.lower()
    try:
        import pandas

        name, keywords = FRAMES[suffix]
        content = BytesIO(path.read_bytes())
        frame = getattr(pandas, name)(content, **keywords)
        if suffix == ".xlsx" and (others := pandas.ExcelFile(content).sheet_names[1:]):
            sheets = ", ".join(map(repr, others))
            reading.say(f"{path.name}: only its first sheet is read, not {sheets}")
    except ImportError as error:
        raise DataError(
            f"{path.name}: {suffix} is read through pandas: pip install pandas pyarrow openpyxl, "
            "or save the file as .csv"
        ) from error
    except (ValueError, KeyError, BadZipFile) as error:
        raise DataError(
            f"{path.name} cannot be read as {suffix}: save it again, or as .csv"
        ) from error
    names, first = [str(name) for name in frame.columns], 1
    if suffix == ".xlsx" and reading.header and len(frame):
        names, frame, first = [str(name) for name in frame.iloc[0]], frame.iloc[1:], 2
    elif suffix == ".xlsx":
        names = [str(number) for number in range(1, frame.shape[1] + 1)]
    for name in columns:
        known = f"it has {', '.join(names)}"
        if name not in names:
            guess = similar(name, names)
            raise DataError(f"{path.name}: no column {name!r}: {known}{guess}; set {OPTIONS}")
        if names.count(name) > 1:
            raise DataError(f"{path.name}: two columns {name!r}: {known}: rename one")
    frame.columns = names
    for name in columns:
        for line, value in enumerate(frame[name], first):
            # `astype(str)` would write Python's spelling of lists and bytes, such as "['sports']" or "b'good'".
            if isinstance(value, bytes) or not pandas.api.types.is_scalar(value):
                remedy = "" if isinstance(value, bytes) else INSTEAD_OF_LIST
                raise DataError(
                    f"{path.name}:{line}: {name!r} must be a string or a number{remedy}"
                )
    cells = frame[list(columns)]
    filled = cells.astype(str).where(cells.notna(), "")
    return ((line, list(row)) for line, row in enumerate(filled.itertuples(index=False), first))


def _without_blanks(
    path: Path, rows: list[Row], columns: Sequence[str], reading: Reading, faults: list[str]
) -> list[Row]:
    """The rows whose cells are all filled; blank cells are faults unless `drop_blank`."""
    for place, column in enumerate(columns):
        empty = [row.line for row in rows if is_blank((*row.texts, row.label)[place])]
        if empty and not reading.drop_blank:
            multi_label = reading.separator and place == len(columns) - 1
            none = " (with 'none' where a text has no label)" if multi_label else ""
            faults.append(
                f"{_place(path, empty[0])}: {column!r} is empty ({_lines_of(path, empty)}): "
                f"fill these rows in{none} or remove them, or set --drop-blank"
            )
    filled = [row for row in rows if not any(map(is_blank, (*row.texts, row.label)))]
    if reading.drop_blank and len(filled) < len(rows):
        reading.say(f"{path.name}: {len(rows) - len(filled)} rows with an empty cell are left out")
    return filled


def _without_conflicts(
    path: Path, rows: list[Row], reading: Reading, faults: list[str]
) -> list[Row]:
    """The rows without equal texts of different labels; unless `drop_conflicts`, all rows and a fault."""
    labels: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        labels.setdefault(text_key(row.texts), set()).add(row.label)
    clashes = [row for row in rows if len(labels[text_key(row.texts)]) > 1]
    if not clashes:
        return rows
    lines = _lines_of(path, [row.line for row in clashes])
    if not reading.drop_conflicts:
        names = " and ".join(map(repr, sorted(labels[text_key(clashes[0].texts)])))
        faults.append(
            f"{_place(path, clashes[0].line)}: the same text is labelled {names} ({lines}): give equal texts "
            "one label, or set --drop-conflicts to leave them out"
        )
        return rows
    reading.say(
        f"{path.name}: {len(clashes)} rows whose text has two labels are left out ({lines})"
    )
    return [row for row in rows if len(labels[text_key(row.texts)]) == 1]


def text_key(texts: Iterable[str]) -> tuple[str, ...]:
    """A key that is equal for texts that differ only in white space."""
    return tuple(" ".join(text.split()) for text in texts)


def group_key(texts: Sequence[str]) -> str:
    """A key that is equal for rows to hold out together: equal texts, and pairs with the same first text."""
    return text_key(texts)[0]


def _label_faults(path: Path, rows: Sequence[Row], column: str, reading: Reading) -> list[str]:
    """The faults of the labels: numbers, one label only, labels of one text."""
    pairs = {(text_key(row.texts), name) for row in rows for name in row.labels(reading.separator)}
    counts = Counter(label for _, label in pairs)
    if len(counts) > MOST_NUMBERS and all(map(_is_number, counts)):
        return [
            f"{_place(path, rows[0].line)}: {column!r} holds {len(counts)} different numbers, and fit learns "
            "classes: make a few of them (such as low and high), or fit Ridge on the vectors (docs/fit.md, Numbers)"
        ]
    if len(counts) == 1:
        return [
            f"{_place(path, rows[0].line)}: every row has the label {rows[0].label!r}: give at least two labels "
            f"in {column!r}"
        ]
    first = {label: row.line for row in reversed(rows) for label in row.labels(reading.separator)}
    once = sorted((label for label in counts if counts[label] == 1), key=lambda label: first[label])
    if once:
        names = ", ".join(map(repr, once[:MAX_NAMED]))
        more = f" and {len(once) - MAX_NAMED} more" if len(once) > MAX_NAMED else ""
        subject = f"labels {names}{more} have" if len(once) > 1 else f"label {names} has"
        remarks = [
            f" ({' and '.join(map(repr, group))} are different labels)"
            for group in _lookalikes(counts)
        ]
        return [
            f"{_place(path, first[once[0]])}: {subject} one text only{''.join(remarks)}: add other texts of "
            f"that label, or remove the row; is {column!r} the column of labels?"
        ]
    return []


def _is_number(label: str) -> bool:
    """Whether the label is a number, or an amount such as "$1,299.00" or "42.13 EUR"."""
    return bool(_AMOUNT.fullmatch(label.strip()))


def _lookalikes(labels: Iterable[str]) -> list[list[str]]:
    """Groups of labels that differ only in case, white space or invisible characters."""
    groups: dict[str, list[str]] = {}
    for label in sorted(labels):
        visible = unicodedata.normalize("NFKC", without_invisible(label)).casefold()
        groups.setdefault(" ".join(visible.split()), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _place(path: Path, line: int) -> str:
    """The place of a row for messages: file and line, or the file in a folder."""
    return str(_files(path)[line - 1]) if path.is_dir() else f"{path.name}:{line}"


def _lines_of(path: Path, lines: Sequence[int]) -> str:
    files = _files(path) if path.is_dir() else []
    places = [
        "/".join(files[line - 1].parts[-2:]) if files else str(line) for line in lines[:MAX_NAMED]
    ]
    more = f" and {len(lines) - MAX_NAMED} more" if len(lines) > MAX_NAMED else ""
    return f"{'files' if files else 'lines'} {', '.join(places)}{more}"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A file's rows, texts from `columns`, and the rows of `--test`."""

    file: Path
    columns: Sequence[str]
    rows: Sequence[Row]
    test: Sequence[Row] = ()

    @classmethod
    def of(
        cls, file: Path, columns: Sequence[str], label: str, reading: Reading, test: Path | None
    ) -> "Labelled":
        """Read both files. Raises DataError."""
        rows = read(file, columns, label, reading)
        test_rows = read_rows(test, columns, label, reading) if test else ()
        return cls(file, columns, rows, test_rows)
