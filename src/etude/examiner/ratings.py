"""The file of ratings: CSV with a header, one row an item (and dimension), a column a rater."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from etude.errors import InvalidError, NotFoundError, TooLargeError

MAX_BYTES: Final = 64 << 20
MAX_GROUPS: Final = 100
_NOTHING: Final = frozenset({"", "na", "n/a", "nan", "null", "none"})
_LARGEST: Final = 1e9


class RatingsUnknownError(NotFoundError):
    """There is no such file of ratings. Parameter `file`."""

    code = "RATINGS_UNKNOWN"


class RatingsUnreadableError(InvalidError):
    """The file is no CSV in UTF-8 with a header. Parameters `file`, `line`, `reason`."""

    code = "RATINGS_UNREADABLE"


class RatingsTooLargeError(TooLargeError):
    """The file has more bytes, or a column more different values, than is sensible."""

    code = "RATINGS_TOO_LARGE"


class RatingColumnUnknownError(InvalidError):
    """The file has no column of this name. Parameters `file`, `column`, `columns`."""

    code = "RATING_COLUMN_UNKNOWN"


class RatingColumnsError(InvalidError):
    """The columns named do not make a comparison. Parameters `file`, `reason`."""

    code = "RATING_COLUMNS_INVALID"


class RatingInvalidError(InvalidError):
    """A rating is no finite number. Parameters `file`, `line`, `column`, `value`."""

    code = "RATING_INVALID"


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """Which column holds what.

    Attributes:
        humans: one a human rater.
        machine: what is compared with them; None = only the humans with each other.
        dimension: what the row is about; None = all rows are about the same.
        by: subgroups.
        subject: whose item it is, for resampling.
    """

    humans: tuple[str, ...]
    machine: str | None = None
    dimension: str | None = None
    by: str | None = None
    subject: str | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One row; a rating of None is missing."""

    humans: tuple[float | None, ...]
    machine: float | None = None
    dimension: str | None = None
    subgroup: str | None = None
    subject: str | None = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The columns as a person named them; None = by their usual names.

    Usual names: `human…` are humans, `machine`, `dimension` and `subject` what they say.
    """

    humans: tuple[str, ...] | None = None
    machine: str | None = None
    dimension: str | None = None
    by: str | None = None
    subject: str | None = None


def read_bytes(file: Path) -> bytes:
    """Return the file's bytes, at most 64 MiB.

    Raises:
        RatingsUnknownError, RatingsUnreadableError, RatingsTooLargeError: see each.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise RatingsUnknownError(file=str(file)) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RatingsUnreadableError(file=str(file), line=1, reason=reason) from error
    if len(data) > MAX_BYTES:
        raise RatingsTooLargeError(file=str(file), limit=f"{MAX_BYTES >> 20} MiB")
    return data


def read_ratings(data: bytes, wanted: Wanted, file: str) -> tuple[Columns, list[Item]]:
    """Read the items, and say which columns were used.

    Args:
        data: CSV (RFC 4180) in UTF-8, its first line the names of the columns.
        wanted: see `Wanted`.
        file: its name, for messages.

    Raises:
        RatingsUnreadableError, RatingsTooLargeError, RatingColumnUnknownError, RatingColumnsError,
            RatingInvalidError: naming file, line and column.
    """
    rows = _rows(data, file)
    first = next(rows, None)
    if first is None:
        raise RatingsUnreadableError(file=file, line=1, reason="it is empty")
    header = [name.strip() for name in first[1]]
    columns = _chosen(header, wanted, file)
    items = [_item(dict(zip(header, row, strict=True)), columns, file, n) for n, row in rows]
    if not items:
        raise RatingsUnreadableError(file=file, line=2, reason="no row follows the header")
    groups = {item.subgroup for item in items}
    for name, values in ((columns.by, groups), (columns.dimension, {i.dimension for i in items})):
        if len(values) > MAX_GROUPS:
            raise RatingsTooLargeError(file=file, limit=f"{MAX_GROUPS} different {name}")
    return columns, items


def _rows(data: bytes, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its first line."""
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise RatingsUnreadableError(file=file, line=line, reason="it is not UTF-8") from error
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    begins, width = 1, 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                width = width or len(row)
                if len(row) != width:
                    reason = f"{len(row)} cells instead of {width}"
                    raise RatingsUnreadableError(file=file, line=begins, reason=reason)
                yield begins, row
            begins = reader.line_num + 1
    except csv.Error as error:
        raise RatingsUnreadableError(file=file, line=begins, reason=str(error)) from error


def _chosen(header: Sequence[str], wanted: Wanted, file: str) -> Columns:
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise RatingColumnsError(file=file, reason=f"two columns are named '{twice}'")

    def usual(name: str) -> str | None:
        return name if name in header and name not in (wanted.humans or ()) else None

    columns = Columns(
        humans=wanted.humans or tuple(name for name in header if name.startswith("human")),
        machine=wanted.machine or usual("machine"),
        dimension=wanted.dimension or usual("dimension"),
        by=wanted.by,
        subject=wanted.subject or usual("subject"),
    )
    others = (columns.machine, columns.dimension, columns.by, columns.subject)
    for name in (*columns.humans, *others):
        if name is not None and name not in header:
            raise RatingColumnUnknownError(file=file, column=name, columns=", ".join(header))
    if len({*columns.humans, columns.machine}) <= len(columns.humans):
        raise RatingColumnsError(file=file, reason="a rater is named twice")
    if not columns.humans or (columns.machine is None and len(columns.humans) < 2):  # noqa: PLR2004 - agreement is of two
        raise RatingColumnsError(file=file, reason="there are not two raters to compare")
    return columns


def _item(row: dict[str, str], columns: Columns, file: str, line: int) -> Item:
    def rating(column: str) -> float | None:
        said = row[column].strip()
        if said.lower() in _NOTHING:
            return None
        try:
            number = float(said) if said.isascii() and "_" not in said else math.nan
        except ValueError:
            number = math.nan
        if not abs(number) <= _LARGEST:
            raise RatingInvalidError(file=file, line=line, column=column, value=said[:40])
        return number

    def word(column: str | None) -> str | None:
        return None if column is None else row[column].strip()

    return Item(
        humans=tuple(map(rating, columns.humans)),
        machine=None if columns.machine is None else rating(columns.machine),
        dimension=word(columns.dimension),
        subgroup=word(columns.by),
        subject=word(columns.subject),
    )
