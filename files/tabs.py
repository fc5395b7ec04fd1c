"""Rows of a table whose cells are separated by tabs.

Spreadsheets, pandas and Python's csv put quotation marks around a cell that holds a tab, a line end or a quotation
mark, and double those inside. Files written by hand, or in a loop, quote nothing, and a text may begin with a quotation
mark. So cells are read as quoted if they are then as many as the header has, else as unquoted if they are then as many.
Lines that can be read both as one row and as several rows are refused.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator

Line = tuple[int, list[str]]
"""The number of a row's first line, from 1, and its cells; a blank line has none."""
LONE_RETURN = (
    "a carriage return is outside quotes and has no line feed after it: "
    "save the file with line ends of Windows or Unix"
)
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"(?=\t|\Z)')
_UNCLOSED = re.compile(r'"(?:[^"]|"")*+\Z')


def rows_between_tabs(
    lines: Iterator[tuple[int, str]], limit: int, error_at: Callable[[int, str], Exception]
) -> Iterator[Line]:
    """The rows of numbered lines, the header first. No row of several lines has more than `limit` characters.

    Raises `error_at(line, reason)`.
    """
    unread: deque[tuple[int, str]] = deque()
    width = 0  # cells of the header

    def next_line() -> tuple[int, str] | None:
        return unread.popleft() if unread else next(lines, None)

    while line := next_line():
        number, text = line[0], line[1].rstrip("\r\n")
        if not text:
            yield number, []
            continue
        cells, further, joined = _quoted_cells(text), [], line[1]
        while cells is None and len(joined) <= limit and (line := next_line()):
            further.append(line)
            joined += line[1]
            if '"' in line[1]:
                cells = _quoted_cells(joined.rstrip("\r\n"))
        if further:
            is_row = bool(cells) and width in (0, len(cells or ()))
            if is_row and all(
                _fits(part, width) for part in (text, *(part for _, part in further))
            ):
                reason = (
                    f"a quote is opened here and closed in line {further[-1][0]}, but each of these lines is a row "
                    'too: put quotes around a text that begins with a ", and write it as ""'
                )
                raise error_at(number, reason)
            if not is_row:
                unread.extendleft(reversed(further))
                cells = None
        plain = text.split("\t")
        if not cells or (len(cells) != width and width == len(plain)):
            if "\r" in text:
                raise error_at(number, LONE_RETURN)
            cells = plain
        width = width or len(cells)
        yield number, cells


def _fits(line: str, width: int) -> bool:
    """Whether a line has `width` cells, unquoted or quoted."""
    text = line.rstrip("\r\n")
    return width in (text.count("\t") + 1, len(_quoted_cells(text) or ()))


def _quoted_cells(row: str) -> list[str] | None:
    """The cells of a row with quoted cells; None if a quote stays open, [] if a line ends outside quotes."""
    cells, position = [], 0
    while True:
        if quoted := _QUOTED.match(row, position):
            cells.append(quoted[1].replace('""', '"'))
            position = quoted.end()
        elif _UNCLOSED.match(row, position):
            return None
        else:
            cell = row[position:].partition("\t")[0]
            if "\n" in cell or "\r" in cell:
                return []
            cells.append(cell)
            position += len(cell)
        if position == len(row):
            return cells
        position += 1
