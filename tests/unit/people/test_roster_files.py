import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import EtudeError
from etude.i18n import text
from etude.people.class_errors import (
    RosterEmptyError,
    RosterFileUnreadableError,
    RosterTooLongError,
)
from etude.people.roster_files import COLUMNS, MAX_LINES, RosterLine, read_roster


def wrong(data: str) -> list[tuple[str, str | float]]:
    """Codes and numbers of what is wrong with a roster."""
    return [(each.code, each.params["line"]) for each in read_roster(data.encode()).wrong]


@pytest.mark.parametrize(
    "data",
    [
        "王小明,id-1,toy-1\n李雷\n",
        "name,id,device_id\n王小明,id-1,toy-1\n李雷,,\n",
        "\ufeffName,ID,Device_ID\r\n王小明 , id-1,toy-1\r\n\r\n ,,\r\n李雷\r\n",
        "name,device_id,id\n王小明,toy-1,id-1\n李雷,,\n",
        "name,id,device_id,,\n王小明,id-1,toy-1,,\n李雷,,,,\n",
        '"王小明","id-1","toy-1"\n李雷,,,,\n',
        "王小明,id-1,toy-1\r李雷",
        "name;id;device_id\n王小明;id-1;toy-1\n李雷;;\n",
        "name\tid\tdevice_id\n王小明\tid-1\ttoy-1\n李雷\t\t\n",
    ],
)
def test_rosters_as_people_write_them(data: str) -> None:
    """With a heading or without, from Excel, with empty lines and cells: the same two learners."""
    found = read_roster(data.encode())
    assert found.wrong == ()
    assert [(each.name, each.learner_id, each.device_id) for each in found.lines] == [
        ("王小明", "id-1", "toy-1"),
        ("李雷", None, None),
    ]


def test_lines_have_the_numbers_that_an_editor_shows() -> None:
    """The heading, empty lines and names on two lines count."""
    found = read_roster(b'name\n\nAnna\n"Ben\nthe second"\nCleo\n')
    assert [each.line for each in found.lines] == [3, 6]
    assert [(each.code, each.params["line"]) for each in found.wrong] == [("ROSTER_LINE_NAME", 4)]


@pytest.mark.parametrize(
    ("data", "empty"),
    [
        ("Anna,a,t\n,,\nBen\n ,\t, \n", (2, 4)),
        ("name;id\n;\nAnna;a\n", (2,)),
        ("Anna\n\n \nBen\n", ()),
        ('Anna,a\n,\nBen,"b\n', (2,)),
    ],
    ids=["cells", "semicolons", "no cells at all", "before what is no CSV"],
)
def test_lines_in_which_nothing_stands_are_numbered(data: str, empty: tuple[int, ...]) -> None:
    """Somebody may have been meant to stand there; a line without separators is only space."""
    assert read_roster(data.encode()).empty == empty


def test_a_line_ends_where_csv_says() -> None:
    """Not at every character that Python or an editor takes for an end of a line."""
    (one,) = read_roster("An\u2028na,a".encode()).lines
    assert (one.name, one.learner_id) == ("An\u2028na", "a")


def test_every_wrong_line_is_told() -> None:
    """Not only the first one; good lines between them are read."""
    data = "Anna,a,t\nBen,a\n,b\nCleo,c,t\nDora,d,e,f\nAnna\n" + "x" * 201 + "\nEve\n"
    assert wrong(data) == [
        ("ROSTER_LINE_NAME", 3),
        ("ROSTER_LINE_COLUMNS", 5),
        ("ROSTER_LINE_NAME", 7),
        ("ROSTER_LINE_LEARNER_TWICE", 2),
        ("ROSTER_LINE_DEVICE_TWICE", 4),
        ("ROSTER_LINE_NAME_TWICE", 6),
    ]


def test_two_of_one_name_need_two_ids() -> None:
    """Whichever of them has none, nobody can tell which is which."""
    assert wrong("Wei,a\nWei,b\n") == []
    for data in ("Wei,a\nWei\n", "Wei\nWei,b\n", "Wei\nWei\n"):
        assert wrong(data) == [("ROSTER_LINE_NAME_TWICE", 2)]


@pytest.mark.parametrize("heading", ["name,class", "name,id,id", "name,,id"])
def test_a_heading_names_the_columns_there_are(heading: str) -> None:
    """Another column is not passed over: it might have been meant."""
    assert wrong(f"{heading}\nAnna,b\n") == [("ROSTER_LINE_COLUMNS", 1)]


def test_what_is_no_csv_is_told_where_it_begins() -> None:
    """What was before it is still looked at."""
    assert wrong(',a\nBen,"b\n') == [("ROSTER_LINE_NOT_CSV", 2), ("ROSTER_LINE_NAME", 1)]


def test_what_is_no_roster_at_all() -> None:
    """Nothing in it, another encoding, too long: each its own error."""
    for empty in (b"", b"\n \n", b"name,id\n", b"\xef\xbb\xbf"):
        with pytest.raises(RosterEmptyError):
            read_roster(empty)
    with pytest.raises(RosterFileUnreadableError):
        read_roster("王小明\n".encode("gb18030"))
    read_roster(b"Anna\n" + b"Ben\n" * (MAX_LINES - 1))
    with pytest.raises(RosterTooLongError):
        read_roster(b"Ben\n" * (MAX_LINES + 1))


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda each: each.encode()))
def test_any_bytes_are_a_roster_or_an_error_of_ours(data: bytes) -> None:
    """No other exception, and every message can be written."""
    try:
        found = read_roster(data)
    except EtudeError as error:
        text(f"error.{error.code}", "en", **error.params)
        return
    for each in found.wrong:
        text(f"error.{each.code}", "zh-CN", **each.params)


NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


@given(st.lists(st.tuples(NAMES, st.none() | NAMES, st.none() | NAMES), min_size=1, max_size=20))
def test_what_is_written_as_csv_is_read_back(
    rows: list[tuple[str, str | None, str | None]],
) -> None:
    """Every cell, whatever quotation marks and commas are in it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    found = read_roster(out.getvalue().encode())
    assert {each.code for each in found.wrong} <= {
        "ROSTER_LINE_LEARNER_TWICE",
        "ROSTER_LINE_DEVICE_TWICE",
        "ROSTER_LINE_NAME_TWICE",
    }
    assert list(found.lines) == [
        RosterLine(line=number, name=name, learner_id=learner_id, device_id=device_id)
        for number, (name, learner_id, device_id) in enumerate(rows, 2)
    ]
