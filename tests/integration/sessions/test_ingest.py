import asyncio
import json
import random
from datetime import timedelta
from typing import Any

import pytest

from etude.sessions import lifecycle, reading, repository
from etude.sessions.errors import DeviceNotNamedError, SessionForeignError, SessionNotYetError
from etude.testing.school import School, body, event


def session(session_id: str, count: int) -> list[dict[str, Any]]:
    return [event(session_id, number) for number in range(1, count + 1)]


def test_events_are_stored_as_sent_and_in_the_order_of_seq(school: School) -> None:
    """Lines come back byte for byte, ordered by seq, whatever order they were sent in."""
    events = session("s1", 9)
    shuffled = random.Random(7).sample(events, len(events))
    answer = school.upload(school.device("toy-1"), "s1", body(*shuffled))
    assert (answer.events_received, answer.duplicates_skipped, answer.watermark) == (9, 0, 9)
    assert b"".join(line + b"\n" for line in school.stored("s1")) == body(*events)


def test_events_without_seq_come_after_those_with_one_by_ts_then_id(school: School) -> None:
    """Order inside a session is (seq or ∞, ts, event_id), never arrival."""
    loose = [
        event("s1", 0, event_id=name, seq=None, ts=ts)
        for name, ts in (("b", 1), ("a", 1), ("c", 0.5))
    ]
    for each in loose:
        del each["seq"]
    school.upload(school.device("toy-1"), "s1", body(*loose, event("s1", 1, ts=99.0)))
    assert [json.loads(line)["event_id"] for line in school.stored("s1")] == [
        "e00001",
        "c",
        "a",
        "b",
    ]


@pytest.mark.parametrize("seed", range(4))
def test_uploads_in_pieces_from_four_clients_store_everything_once(
    school: School, seed: int
) -> None:
    """Overlapping halves in random order from four clients at once: stored once, counts add up."""
    chance = random.Random(seed)
    events = session("s1", 60)
    pieces = []
    for _ in range(4):
        mine = chance.sample(events, len(events))
        cut = chance.randrange(1, 59)
        pieces += [mine[:cut], mine[cut:], chance.sample(events, 10)]
    chance.shuffle(pieces)

    async def all_at_once() -> list[Any]:
        sends = [school.send(school.device("toy-1"), "s1", body(*piece)) for piece in pieces]
        return await asyncio.gather(*sends)

    answers = school.run(all_at_once())
    assert sum(answer.events_received for answer in answers) == sum(map(len, pieces))
    stored = sum(answer.events_received - answer.duplicates_skipped for answer in answers)
    assert stored == 60
    assert school.row("s1").event_count == 60
    assert len(school.stored("s1")) == 60
    assert max(answer.watermark or 0 for answer in answers) == 60


def test_same_id_other_content_keeps_the_first_and_names_the_conflict(school: School) -> None:
    """The first stays, `conflicts` names the id, the newcomer is kept in quarantine once."""
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 1)))
    other = body(event("s1", 1, ts=5.0), event("s1", 2))
    for _ in range(2):
        answer = school.upload(toy, "s1", other)
        assert answer.conflicts == ["e00001"]
    assert answer.duplicates_skipped == 1
    assert answer.events_received == answer.duplicates_skipped + len(answer.conflicts)
    assert json.loads(school.stored("s1")[0])["ts"] == 1.0

    session_key = school.row("s1").session_key

    async def kept() -> Any:
        async with school.database.read() as connection:
            return await reading.quarantined(connection, session_key)

    assert [json.loads(each.line)["ts"] for each in school.run(kept()).items] == [5.0]


def test_equal_content_in_other_bytes_is_a_duplicate(school: School) -> None:
    """Key order, spacing and number spelling do not make content differ (RFC 8785)."""
    toy = school.device("toy-1")
    one = event("s1", 1, ts=1.0)
    school.upload(toy, "s1", body(one))
    again = json.dumps(
        dict(reversed(one.items())) | {"ts": 1}, indent=None, separators=(" , ", " : ")
    )
    answer = school.upload(toy, "s1", again.encode())
    assert (answer.duplicates_skipped, answer.conflicts) == (1, [])


def test_many_lines_in_other_bytes_are_weighed_like_one(school: School) -> None:
    """Of three hundred lines written differently, all but the one that says else are duplicates."""
    toy = school.device("toy-1")
    events = session("s1", 300)
    school.upload(toy, "s1", body(*events))
    events[7] = events[7] | {"ts": 9_999.0}
    again = b"\n".join(json.dumps(each, separators=(" , ", " : ")).encode() for each in events)
    answer = school.upload(toy, "s1", again)
    assert (answer.duplicates_skipped, answer.conflicts) == (299, ["e00008"])


def test_a_line_twice_in_one_body_is_stored_once(school: School) -> None:
    """Duplicates and conflicts inside one body are found as well."""
    answer = school.upload(
        school.device("toy-1"), "s1", body(event("s1", 1), event("s1", 1), event("s1", 1, ts=9.0))
    )
    assert (answer.events_received, answer.duplicates_skipped, answer.conflicts) == (
        3,
        1,
        ["e00001"],
    )
    assert len(school.stored("s1")) == 1


def test_a_bad_line_is_refused_alone(school: School) -> None:
    """Neighbours of a poisoned line are stored, and the answer's counts add up to the lines."""
    lines = [
        body(event("s1", 1)),
        b"{broken\n",
        b"\n",
        body(event("other", 2)),
        body(event("s1", 3)),
    ]
    answer = school.upload(school.device("toy-1"), "s1", b"".join(lines))
    assert (answer.events_received, answer.events_rejected) == (2, 2)
    assert [(error.line, error.code) for error in answer.errors] == [
        (2, "invalid_json"),
        (4, "wrong_session"),
    ]
    assert answer.watermark == 1


def test_an_empty_body_opens_nothing(school: School) -> None:
    """No line, no session; the answer is all zeros."""
    answer = school.upload(school.device("toy-1"), "s1", b"\r\n\n")
    assert (answer.events_received, answer.events_rejected, answer.watermark) == (0, 0, None)
    with pytest.raises(KeyError):
        school.row("s1")


def test_a_missing_seq_shows_as_a_gap_until_it_arrives(school: School) -> None:
    """The watermark stops below a gap; the gap is named; a late event closes it."""
    toy = school.device("toy-1")

    async def gaps() -> list[tuple[int, int]]:
        async with school.database.read() as connection:
            record = await repository.find(connection, "s1")
            assert record is not None
            return await repository.missing(connection, record)

    events = session("s1", 20)
    sent = [each for each in events if each["seq"] not in {1, 2, 12, 13, 14}]
    assert school.upload(toy, "s1", body(*sent)).watermark == 0
    assert school.run(gaps()) == [(1, 2), (12, 14)]
    assert school.upload(toy, "s1", body(*events[:2])).watermark == 11
    assert school.upload(toy, "s1", body(*events[11:14])).watermark == 20
    assert school.run(gaps()) == []


def test_a_session_belongs_to_its_device_whichever_token_it_shows(school: School) -> None:
    """Another token of the same device may add; another device or learner may not."""
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))
    school.upload(school.device("toy-1"), "s1", body(event("s1", 2)))
    for stranger in (school.device("toy-2"), school.learner("ben"), school.learner("anna")):
        with pytest.raises(SessionForeignError):
            school.upload(stranger, "s1", body(event("s1", 3)))
    assert school.row("s1").event_count == 2


def test_the_learner_of_a_session_may_contest(school: School) -> None:
    """A contest comes from the learner whose session it is, and from no other."""
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))
    contest = body(event("s1", 2, event_type="signal_contested"))
    with pytest.raises(SessionForeignError):
        school.upload(school.learner("ben"), "s1", contest)
    assert school.upload(school.learner("anna"), "s1", contest).events_received == 1


def test_a_contest_that_comes_before_its_session_does_not_take_it(school: School) -> None:
    """Too early is 425, to be sent again; the toy's session then belongs to the toy."""
    contest = body(event("s1", 2, event_type="signal_contested"))
    with pytest.raises(SessionNotYetError):
        school.upload(school.learner("anna"), "s1", contest)
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))
    assert school.upload(school.learner("anna"), "s1", contest).watermark == 2


def test_a_service_uploads_for_the_device_it_names(school: School) -> None:
    """A gateway's session belongs to the named device; without a name it is refused."""
    gateway = school.gateway()
    with pytest.raises(DeviceNotNamedError):
        school.upload(gateway, "s1", body(event("s1", 1)))
    school.upload(gateway, "s1", body(event("s1", 1)), device="toy-2")
    row = school.row("s1")
    assert (row.device_key, row.learner_key) == (school.devices["toy-2"], school.learners["ben"])
    with pytest.raises(SessionForeignError):
        school.upload(gateway, "s1", body(event("s1", 2)), device="toy-1")
    with pytest.raises(DeviceNotNamedError):
        school.upload(gateway, "s1", body(event("s1", 2)))
    assert school.upload(school.device("toy-2"), "s1", body(event("s1", 2))).watermark == 2


def test_a_refused_upload_does_not_touch_its_neighbours(school: School) -> None:
    """Uploads that share a transaction have their own refusals."""
    school.upload(school.device("toy-1"), "s1", body(event("s1", 1)))

    async def together() -> list[Any]:
        return await asyncio.gather(
            school.send(school.device("toy-2"), "s1", body(event("s1", 2))),
            school.send(school.device("toy-2"), "s2", body(event("s2", 1))),
            school.send(school.gateway(), "s3", body(event("s3", 1))),
            school.send(school.device("toy-1"), "s1", body(event("s1", 2))),
            return_exceptions=True,
        )

    first, second, third, fourth = school.run(together())
    assert isinstance(first, SessionForeignError)
    assert second.events_received == 1
    assert isinstance(third, DeviceNotNamedError)
    assert fourth.watermark == 2


def start(session_id: str, started_at: object) -> dict[str, Any]:
    return event(
        session_id,
        1,
        event_type="session_start",
        signal="session_begin",
        meta={"started_at": started_at},
        ts=0.0,
    )


@pytest.mark.parametrize(
    ("started_at", "flag", "basis"),
    [
        ("1970-01-01T00:00:07Z", "behind", "receipt_time"),
        ("2026-03-15T09:00:00+00:00", "ahead", "receipt_time"),
        ("2026-03-01T16:00:00+08:00", None, "session_time"),
        ("yesterday", "unreadable", "receipt_time"),
        ("2026-03-01T08:00:00", "unreadable", "receipt_time"),
        (17, "unreadable", "receipt_time"),
    ],
)
def test_a_wrong_device_clock_is_flagged_and_estimated(
    school: School, started_at: object, flag: str | None, basis: str
) -> None:
    """1970, two weeks ahead, another zone, nonsense: accepted, flagged, placed by receipt."""
    answer = school.upload(
        school.device("toy-1"), "s1", body(start("s1", started_at), event("s1", 2, ts=600.0))
    )
    assert answer.events_received == 2
    row = school.row("s1")
    assert (row.clock_flag, row.started_estimated, row.owner_basis) == (
        flag,
        flag is not None,
        basis,
    )
    if flag is not None:
        assert row.started_us == row.first_received_us - 600_000_000
    else:
        assert row.utc_offset_min == 480


def test_a_late_session_start_places_the_session_and_its_learner(school: School) -> None:
    """Uploaded without its start, a session is settled by receipt; the start then corrects it."""
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 2)))
    assert school.row("s1").learner_key == school.learners["anna"]
    told = (school.clock.now() - timedelta(days=60)).isoformat()
    school.upload(toy, "s1", body(start("s1", told)))
    row = school.row("s1")
    assert (row.owner_basis, row.learner_key) == ("session_time", None)


def test_a_persons_decision_about_the_owner_stands(school: School) -> None:
    """Once staff has assigned a session, no later upload changes whose it is."""
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 2)))
    operator = school.gateway()

    async def assign() -> None:
        async with school.database.transaction() as work:
            record = (await repository.lock(work, ["s1"]))["s1"]
            await lifecycle.assign(work, record, "ben", operator, school.clock.now())

    school.run(assign())
    school.upload(toy, "s1", body(start("s1", school.clock.now().isoformat())))
    assert school.row("s1").learner_key == school.learners["ben"]


def test_a_session_without_end_is_abandoned_after_a_day_and_opens_again(school: School) -> None:
    """24 h after the last event an open session is abandoned; a later event reopens it."""
    toy = school.device("toy-1")
    school.upload(toy, "s1", body(event("s1", 1)))
    end = event("s2", 1, event_type="session_end", signal="session_complete")
    school.upload(toy, "s2", body(end))
    school.clock.advance(86_400)
    assert school.run(lifecycle.close_abandoned(school.database, school.clock)) == 0
    school.clock.advance(1)
    assert school.run(lifecycle.close_abandoned(school.database, school.clock)) == 1
    assert (school.row("s1").status, school.row("s2").status) == ("abandoned", "ended")
    school.upload(toy, "s1", body(event("s1", 1)))
    assert school.row("s1").status == "abandoned"
    school.upload(toy, "s1", body(event("s1", 2)))
    assert school.row("s1").status == "open"
