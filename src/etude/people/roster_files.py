"""A roster as a file: CSV in UTF-8, a learner a line, `name[,id][,device_id]`.

A first line that begins with `name` is a heading and says which columns follow. Empty lines are
passed over; of those with separators and nothing between them (`,,`) the numbers are kept, since
somebody may have been meant to stand there. Pure: whether there are such learners and devices is
`roster_import`'s to find out.
"""

import csv
import io
from collections.abc import Sequence
from typing import Final

import msgspec

from etude.people.class_errors import (
    LineColumnsError,
    LineDeviceTwiceError,
    LineLearnerTwiceError,
    LineNameError,
    LineNameTwiceError,
    LineNotCsvError,
    RosterEmptyError,
    RosterFileUnreadableError,
    RosterLineError,
    RosterTooLongError,
)
from etude.people.errors import NameInvalidError
from etude.people.names import MAX_NAME, check_name

COLUMNS: Final = ("name", "id", "device_id")
MAX_LINES: Final = 1000
MAX_BYTES: Final = 512 * 1024


class RosterLine(msgspec.Struct, frozen=True, kw_only=True):
    """A learner of a roster. Without an id it is somebody of the class by name, or new."""

    line: int
    name: str
    learner_id: str | None = None
    device_id: str | None = None


class RosterFile(msgspec.Struct, frozen=True, kw_only=True):
    """What could be read, what is wrong with other lines, and the numbers of lines like `,,`."""

    lines: tuple[RosterLine, ...]
    wrong: tuple[RosterLineError, ...]
    empty: tuple[int, ...] = ()


def read_roster(data: bytes, file: str = "-") -> RosterFile:
    """Read a roster; what is wrong with single lines is in the result, every one of them.

    Raises:
        RosterFileUnreadableError: it is not UTF-8 (a byte order mark is passed over).
        RosterEmptyError: it has no line of a learner, good or bad.
        RosterTooLongError: it has more than `MAX_LINES`.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RosterFileUnreadableError(file=file, reason="not UTF-8") from error
    rows, empty, wrong = _rows(text)
    columns: Sequence[str] = COLUMNS
    if rows and rows[0][1][0].lower() == COLUMNS[0]:
        line, heading = rows.pop(0)
        while not heading[-1]:
            heading.pop()
        columns = [each.lower() for each in heading]
        if len(set(columns)) != len(columns) or not set(columns) <= set(COLUMNS):
            return RosterFile(lines=(), wrong=(LineColumnsError(line=line),))
    if not rows and not wrong:
        raise RosterEmptyError
    if len(rows) > MAX_LINES:
        raise RosterTooLongError(most=MAX_LINES)
    lines: list[RosterLine] = []
    for number, cells in rows:
        try:
            lines.append(_line(number, cells, columns))
        except RosterLineError as error:
            wrong.append(error)
    return RosterFile(lines=tuple(lines), wrong=(*wrong, *_twice(lines)), empty=tuple(empty))


def _rows(text: str) -> tuple[list[tuple[int, list[str]]], list[int], list[RosterLineError]]:
    """Cut a text into lines of cells, with the number that each line begins at; those of `,,`."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    rows: list[tuple[int, list[str]]] = []
    empty: list[int] = []
    begins = 1
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((begins, stripped))
            elif len(stripped) > 1:
                empty.append(begins)
            begins = reader.line_num + 1
    except csv.Error:
        return rows, empty, [LineNotCsvError(line=begins)]
    return rows, empty, []


def _separator(text: str) -> str:
    """Return what stands between cells: by its heading, where a spreadsheet writes no comma."""
    first = next((line.strip().lower() for line in text.splitlines() if line.strip()), "")
    return next((one for one in (";", "\t") if first.startswith(f"{COLUMNS[0]}{one}")), ",")


def _line(number: int, cells: Sequence[str], columns: Sequence[str]) -> RosterLine:
    if any(cells[len(columns) :]):
        raise LineColumnsError(line=number)
    given = dict(zip(columns, cells, strict=False))
    try:
        name = check_name(given["name"])
    except NameInvalidError as error:
        raise LineNameError(line=number, longest=MAX_NAME) from error
    return RosterLine(
        line=number,
        name=name,
        learner_id=given.get("id") or None,
        device_id=given.get("device_id") or None,
    )


def _twice(lines: Sequence[RosterLine]) -> list[RosterLineError]:
    """Find what stands in two lines: an id, a device, a name of whom no id tells apart."""
    wrong: list[RosterLineError] = []
    ids: dict[str, int] = {}
    devices: dict[str, int] = {}
    names: dict[str, RosterLine] = {}
    for each in lines:
        if each.learner_id is not None and each.learner_id in ids:
            wrong.append(LineLearnerTwiceError(line=each.line, other=ids[each.learner_id]))
            continue
        if each.device_id is not None and each.device_id in devices:
            wrong.append(LineDeviceTwiceError(line=each.line, other=devices[each.device_id]))
        first = names.setdefault(each.name, each)
        if first is not each and None in {first.learner_id, each.learner_id}:
            wrong.append(LineNameTwiceError(line=each.line, other=first.line))
        if each.learner_id is not None:
            ids[each.learner_id] = each.line
        if each.device_id is not None:
            devices.setdefault(each.device_id, each.line)
    return wrong
