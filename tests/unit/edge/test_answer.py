import json
from datetime import UTC, datetime
from typing import Any

import pytest

from etude.edge.answer import (
    is_retried,
    read_accepted,
    read_problem,
    refused_lines,
    retry_after_s,
)
from etude.edge.errors import AnswerInvalidError
from etude.net import Reply

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
BASE = {"status": "accepted", "session_id": "s-1", "events_received": 2, "duplicates_skipped": 0}


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_the_protocol_s_own_four_fields_are_enough() -> None:
    """What is not received counts as rejected, without names."""
    accepted = read_accepted(reply(BASE), "s-1", 3)
    assert (accepted.events_received, accepted.events_rejected, accepted.errors) == (2, 1, [])


def test_unknown_fields_of_an_answer_are_no_fault() -> None:
    """A newer server may say more."""
    assert read_accepted(reply({**BASE, "later": 1}), "s-1", 2).watermark is None


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Welcome to the hotel</html>",
        b"",
        b"[]",
        b"null",
        {**BASE, "status": "ok"},
        {**BASE, "session_id": "s-2"},
        {**BASE, "events_received": "2"},
        {**BASE, "events_received": -1},
        {**BASE, "events_received": 3},
        {**BASE, "duplicates_skipped": 3},
        {**BASE, "events_rejected": 1},
        {**BASE, "events_rejected": 0, "errors": [{"line": 1, "code": "bad_type"}]},
        {**BASE, "events_received": 1, "events_rejected": 1, "errors": [{"line": 3, "code": "x"}]},
        {**BASE, "events_received": 1, "events_rejected": 1, "errors": [{"line": 0, "code": "x"}]},
        {**BASE, "conflicts": ["a", "b", "c"]},
        {"status": "accepted"},
    ],
)
def test_an_answer_that_is_not_the_protocol_s_acknowledges_nothing(body: Any) -> None:
    """Captive portals, other sessions, counts that do not add up."""
    with pytest.raises(AnswerInvalidError):
        read_accepted(reply(body), "s-1", 2)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 302, 204])
def test_these_are_tried_again(status: int) -> None:
    """Everything but a 4xx, and three of those."""
    assert is_retried(status)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 415, 422])
def test_these_are_not(status: int) -> None:
    """A 4xx says that the same again is pointless."""
    assert not is_retried(status)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("Sun, 01 Mar 2026 09:01:30 GMT", 90),
        ("Sun, 01 Mar 2026 08:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("٣", None),
        ("", None),
        ("9" * 400, 999999999),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    """RFC 9110 §10.2.3; nonsense is as if it were absent."""
    assert retry_after_s({"retry-after": header}, NOW) == seconds


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"code":"X","detail":"d"}', "X"),
        (b'{"code":5}', "HTTP_400"),
        (b"<html>", "HTTP_400"),
        (b'{"code":"X","errors":"?"}', "X"),
    ],
)
def test_any_body_makes_a_problem(body: bytes, code: str) -> None:
    """The code is the document's, else that of the status."""
    assert read_problem(reply(body, 400)).code == code
    assert refused_lines(reply(body, 400)) == []


def test_a_problem_may_name_lines() -> None:
    """`errors` of a 422 that refuses every line."""
    named = refused_lines(reply({"code": "X", "errors": [{"line": 2, "code": "bad_type"}]}, 422))
    assert [(one.line, one.code) for one in named] == [(2, "bad_type")]
