"""Rows of a table whose cells stand between tabs.

Spreadsheets, pandas and Python's csv put quotation marks around a cell that holds a tab, a line end or a quotation
mark, and double those inside. Who writes such a file by hand, or in a loop, quotes nothing, and a text may begin with a
quotation mark. So the cells are read as quoted ones where that gives as many as the header has, and as they stand
where that does. Lines that are one row and several rows just as well are refused.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator

Line = tuple[int, list[str]]
"""The number of a row's first line, from 1, and its cells; a blank line has none."""
LONE_RETURN = (
    "a carriage return stands outside quotes and without a line feed after it: "
    "save the file with line ends of Windows or Unix"
)
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"(?=\t|\Z)')
_UNCLOSED = re.compile(r'"(?:[^"]|"")*+\Z')


def rows_between_tabs(
    lines: Iterator[tuple[int, str]], most: int, wrong: Callable[[int, str], Exception]
) -> Iterator[Line]:
    """The rows of numbered lines, the header first. No row of several lines has more than `most` characters.

    Raises what `wrong` makes of a line and a reason.
    """
    ahead: deque[tuple[int, str]] = deque()
    width = 0  # cells of the header

    def following() -> tuple[int, str] | None:
        return ahead.popleft() if ahead else next(lines, None)

    while line := following():
        number, text = line[0], line[1].rstrip("\r\n")
        if not text:
            yield number, []
            continue
        cells, others, joined = _quoted_cells(text), [], line[1]
        while cells is None and len(joined) <= most and (line := following()):
            others.append(line)
            joined += line[1]
            if '"' in line[1]:
                cells = _quoted_cells(joined.rstrip("\r\n"))
        if others:
            is_one = bool(cells) and width in (0, len(cells or ()))
            if is_one and all(_fits(each, width) for each in (text, *(each for _, each in others))):
                reason = (
                    f"a quote is opened here and closed in line {others[-1][0]}, but each of these lines is a row "
                    'too: put quotes around a text that begins with a ", and write it as ""'
                )
                raise wrong(number, reason)
            if not is_one:
                ahead.extendleft(reversed(others))
                cells = None
        plain = text.split("\t")
        if not cells or (len(cells) != width and width == len(plain)):
            if "\r" in text:
                raise wrong(number, LONE_RETURN)
            cells = plain
        width = width or len(cells)
        yield number, cells


def _fits(line: str, width: int) -> bool:
    text = line.rstrip("\r\n")
    return width in (text.count("\t") + 1, len(_quoted_cells(text) or ()))


def _quoted_cells(row: str) -> list[str] | None:
    """The cells, of which some are quoted; None where a quote stays open, [] where a line ends outside quotes."""
    cells, at = [], 0
    while True:
        if quoted := _QUOTED.match(row, at):
            cells.append(quoted[1].replace('""', '"'))
            at = quoted.end()
        elif _UNCLOSED.match(row, at):
            return None
        else:
            cell = row[at:].partition("\t")[0]
            if "\n" in cell or "\r" in cell:
                return []
            cells.append(cell)
            at += len(cell)
        if at == len(row):
            return cells
        at += 1
