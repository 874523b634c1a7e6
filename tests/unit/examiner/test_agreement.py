"""Runs of agreement: what is compared, the same for the same input, files refused by name."""

import math
from typing import Any

import msgspec
import pytest

from etude.errors import EtudeError
from etude.examiner.agreement import AgreementRun, Inputs, run_agreement, run_bytes
from etude.examiner.ratings import MAX_GROUPS, Wanted, read_ratings
from etude.i18n import LOCALES, text

HEAD = "subject,dimension,group,human_a,human_b,machine\n"
ROWS = [
    f"s{index % 7},{dimension},{'child' if index % 2 else 'adult'},{a},{b},{m}\n"
    for dimension in ("accuracy", "fluency")
    for index, (a, b, m) in enumerate(
        zip(
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 2, 4],
            [2, 2, 3, 5, 5, 5, 8, 8, 9, 8, 1, 4],
            [1, 3, 3, 4, 6, 6, 6, 9, 9, 9, 3, 2],
            strict=True,
        )
    )
]


def run(content: str, *, seed: int = 1, resamples: int = 100, **wanted: Any) -> AgreementRun:
    columns, items = read_ratings(content.encode(), Wanted(**wanted), "r.csv")
    inputs = Inputs(file_sha256="0" * 64, columns=columns, seed=seed, resamples=resamples)
    return run_agreement(items, inputs)


def test_each_dimension_and_subgroup_is_compared() -> None:
    """Two dimensions, everybody and two groups, the machine and the humans: twelve comparisons."""
    made = run(HEAD + "".join(ROWS), by="group").comparisons
    assert [(one.dimension, one.subgroup, one.n) for one in made[::2]] == [
        ("accuracy", None, 12),
        ("accuracy", "adult", 6),
        ("accuracy", "child", 6),
        ("fluency", None, 12),
        ("fluency", "adult", 6),
        ("fluency", "child", 6),
    ]
    assert {one.compared for one in made[1::2]} == {"each_human_with_the_others"}
    assert made[0].subjects == 7
    whole = made[0].pearson
    assert whole.value is not None
    assert whole.low is not None
    assert whole.high is not None
    assert 0.8 < whole.low <= whole.value <= whole.high <= 1


def test_the_same_input_gives_the_same_bytes() -> None:
    """Only file, options and seed count; another seed moves the ends and not the values."""
    content = HEAD + "".join(ROWS)
    one, other = run(content), run(content, seed=2)
    assert run_bytes(one) == run_bytes(run(content))
    assert one.inputs_digest != other.inputs_digest
    assert one.comparisons[0].pearson.value == other.comparisons[0].pearson.value
    assert one.comparisons[0].pearson.low != other.comparisons[0].pearson.low


def test_another_dimension_moves_nothing() -> None:
    """The figures of a dimension are the same whether or not the file has others."""
    both, alone = run(HEAD + "".join(ROWS)), run(HEAD + "".join(ROWS[:12]))
    assert both.comparisons[:2] == alone.comparisons


def test_missing_ratings_are_counted_and_not_used() -> None:
    """Empty cells, NA and NaN are missing; the humans' own comparison needs no machine."""
    rows = ["s1,accuracy,x,1,2,\n", "s2,accuracy,x,NA,2,3\n", "s3,accuracy,x,3,NaN,3\n"]
    machine, humans = run(HEAD + "".join(ROWS[:12]) + "".join(rows)).comparisons
    assert (machine.n, machine.missing) == (12, 3)
    assert (humans.n, humans.missing) == (13, 2)


def test_what_has_no_meaning_says_why_and_is_json() -> None:
    """Too few and constant are told apart, and no NaN is ever written."""
    few = run("human,machine\n1,2\n2,3\n")
    constant = run("human,machine\n" + "5,5\n" * 6)
    assert few.comparisons[0].pearson.reason == "too_few"
    assert constant.comparisons[0].icc_2_1.reason == "constant"
    for made in (few, constant):
        (comparison,) = msgspec.json.decode(run_bytes(made))["comparisons"]
        figures = [comparison[name] for name in ("pearson", "spearman", "icc_2_1")]
        assert all(one["value"] is None and one["low"] is None for one in figures)
        assert b"NaN" not in run_bytes(made)


def test_without_people_each_item_is_drawn_by_itself() -> None:
    """No column of people: their number is not said, and there is an interval all the same."""
    (made,) = run("human,machine\n" + "".join(f"{n},{n + n % 3}\n" for n in range(9))).comparisons
    assert made.subjects is None
    assert made.pearson.low is not None
    assert not math.isnan(made.pearson.low)


@pytest.mark.parametrize(
    ("content", "wanted", "code", "params"),
    [
        ("", {}, "RATINGS_UNREADABLE", {"line": 1}),
        ("human,machine\n", {}, "RATINGS_UNREADABLE", {"line": 2}),
        ("human,machine\n1,2\n\n3\n", {}, "RATINGS_UNREADABLE", {"line": 4}),
        ('human,machine\n1,"2\n', {}, "RATINGS_UNREADABLE", {"line": 2}),
        ("human,machine\n1,2\n1,two\n", {}, "RATING_INVALID", {"line": 3, "column": "machine"}),
        ("human,machine\n1,inf\n", {}, "RATING_INVALID", {"line": 2, "value": "inf"}),
        ("human,machine\n1_0,1\n", {}, "RATING_INVALID", {"column": "human"}),
        ("human,machine\n１,1\n", {}, "RATING_INVALID", {"column": "human"}),  # noqa: RUF001 - a full-width digit
        ('human,note,machine\n1,"a\nb",2\n1,,x\n', {}, "RATING_INVALID", {"line": 4}),
        ("human,machine\n1,2\n", {"by": "age"}, "RATING_COLUMN_UNKNOWN", {"column": "age"}),
        ("human,machine\n1,2\n", {"humans": ("ann",)}, "RATING_COLUMN_UNKNOWN", {"column": "ann"}),
        ("human,human\n1,2\n", {}, "RATING_COLUMNS_INVALID", {}),
        ("human\n1\n", {}, "RATING_COLUMNS_INVALID", {}),
        ("a,machine\n1,1\n", {}, "RATING_COLUMNS_INVALID", {}),
        ("a,b\n1,1\n", {"humans": ("a",), "machine": "a"}, "RATING_COLUMNS_INVALID", {}),
        (
            "human,machine,by\n" + "".join(f"1,2,{n}\n" for n in range(MAX_GROUPS + 1)),
            {"by": "by"},
            "RATINGS_TOO_LARGE",
            {},
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    content: str, wanted: dict[str, Any], code: str, params: dict[str, Any]
) -> None:
    """The error names file, line and column, in both languages."""
    with pytest.raises(EtudeError) as raised:
        read_ratings(content.encode(), Wanted(**wanted), "r.csv")
    error = raised.value
    assert error.code == code
    assert error.params | params == error.params
    for locale in LOCALES:
        assert "r.csv" in text(f"error.{code}", locale, **error.params)


def test_bytes_that_are_no_text_are_refused() -> None:
    """Not UTF-8: named by its line."""
    with pytest.raises(EtudeError) as raised:
        read_ratings(b"human,machine\n1,2\n\xff,3\n", Wanted(), "r.csv")
    assert raised.value.params["line"] == 3


def test_a_byte_order_mark_is_no_part_of_a_name() -> None:
    """A spreadsheet's UTF-8 is read like any other."""
    content = b"\xef\xbb\xbfhuman,machine\r\n1,2\r\n"
    assert read_ratings(content, Wanted(), "r.csv")[0].humans == ("human",)
