from collections.abc import Callable
from pathlib import Path

import pytest

from etude.edge import upload_state
from etude.edge.outbox import Outbox
from etude.edge.upload_state import UploadState, UploadStatus
from etude.net import HttpClient
from etude.testing.clocks import ManualClock
from etude.testing.fake_cloud import Answer, FakeCloud
from etude.testing.journals import write_journal

OpenOutbox = Callable[..., Outbox]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 415])
def test_a_4xx_is_kept_aside_and_shown(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, status: int
) -> None:
    """Not retried by time or trigger; a person releases it."""
    write_journal(tmp_path)
    cloud.next.append(Answer(status, {"code": "NO", "detail": "no."}))
    outbox = open_outbox()
    (state,) = outbox.run_due()
    assert state.status is UploadStatus.REFUSED
    assert state.problem == upload_state.Problem(code="NO", message="no.", http_status=status)
    outbox.trigger()
    assert outbox.run_due() == []
    outbox = open_outbox()
    assert outbox.run_due() == []
    outbox.release("s-1")
    assert outbox.run_due()[0].status is UploadStatus.DONE


def test_an_erased_session_is_shown_and_never_sent_again(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """410, and not even a release brings it back."""
    write_journal(tmp_path)
    cloud.erased.add("s-1")
    outbox = open_outbox()
    assert outbox.run_due()[0].status is UploadStatus.ERASED
    outbox.trigger()
    outbox.release()
    assert outbox.run_due() == []
    assert len(cloud.requests) == 1


def test_a_poisoned_line_is_kept_aside_alone(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """Named in `errors`: its neighbours are stored, it is shown with its place."""
    write_journal(tmp_path, count=5)
    cloud.poison = {"e003"}
    (state,) = open_outbox().run_due()
    assert list(cloud.events["s-1"]) == ["e001", "e002", "e004", "e005"]
    assert state.status is UploadStatus.DONE
    (refused,) = state.refused
    assert (refused.code, refused.part, refused.line, refused.event_id) == (
        "bad_type",
        1,
        3,
        "e003",
    )


def test_more_refused_lines_than_the_server_names_are_all_named(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """50 bad lines of 100, 20 named a time: every one is listed with its id, the rest is stored."""
    write_journal(tmp_path, count=100)
    cloud.poison = {f"e{number:03}" for number in range(2, 101, 2)}
    (state,) = open_outbox().run_due()
    assert {one.event_id for one in state.refused} == cloud.poison
    assert (state.refused_count, len(cloud.events["s-1"])) == (50, 50)
    assert state.status is UploadStatus.DONE


@pytest.mark.parametrize("poisoned", [1, 2, 37, 64, 100])
def test_a_line_that_spoils_the_whole_body_is_found(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox, poisoned: int
) -> None:
    """A 422 for everything: halved until the one line stands alone; all others are stored once."""
    write_journal(tmp_path, count=100)
    cloud.poison_422 = {f"e{poisoned:03}"}
    (state,) = open_outbox().run_due()
    assert len(cloud.events["s-1"]) == 99
    assert [one.event_id for one in state.refused] == list(cloud.poison_422)
    assert state.status is UploadStatus.DONE
    assert len(cloud.requests) < 40


def test_a_body_of_bad_lines_only_is_not_halved(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """`NO_VALID_LINE` says it for all: one request."""
    write_journal(tmp_path, count=30)
    cloud.poison = {f"e{number:03}" for number in range(1, 31)}
    (state,) = open_outbox().run_due()
    assert (state.refused_count, len(cloud.requests)) == (30, 1)
    assert {one.code for one in state.refused} == {"bad_type", "NO_VALID_LINE"}


def test_a_body_too_large_for_the_server_is_halved(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """A server with lower limits than the protocol's gets smaller bodies."""
    write_journal(tmp_path, count=10)
    cloud.next.extend([Answer(413), Answer(413)])
    assert open_outbox().run_due()[0].status is UploadStatus.DONE
    assert len(cloud.events["s-1"]) == 10


def test_broken_and_overlong_lines_are_kept_aside(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """What is no event is refused by the server, what is too long is not even sent."""
    folder = write_journal(tmp_path, seal=False)
    with (folder / "events.jsonl").open("ab") as part:
        part.write(b"{broken\n" + b'{"x":"' + b"x" * 70_000 + b'"}\n')
    write_journal(tmp_path, count=1)
    (state,) = open_outbox().run_due()
    assert [(one.code, one.line) for one in state.refused] == [
        ("too_long", 5),
        ("invalid_json", 4),
    ]
    assert list(cloud.events["s-1"]) == ["e001", "e002", "e003"]
    assert state.status is UploadStatus.DONE


def test_conflicts_are_shown(tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox) -> None:
    """The server holds the id with other content: named, not retried."""
    cloud.events["s-1"] = {"e002": b'{"other":1}'}
    write_journal(tmp_path)
    (state,) = open_outbox().run_due()
    assert (state.conflicts, state.status) == (["e002"], UploadStatus.DONE)


def test_a_token_that_the_server_does_not_know_is_shown(tmp_path: Path, cloud: FakeCloud) -> None:
    """401 keeps the session aside; with the right token and a release it goes."""
    write_journal(tmp_path)
    cloud.token = "right"
    for bearer, expected in (("wrong", UploadStatus.REFUSED), ("right", UploadStatus.DONE)):
        client = HttpClient("https://cloud.test", bearer=bearer, wire=cloud.wire())
        with Outbox(tmp_path, client, clock=ManualClock()) as outbox:
            outbox.release()
            assert outbox.run_due()[0].status is expected


def test_listed_refusals_are_bounded_and_counted() -> None:
    """A state does not grow without end."""
    state = UploadState(session_id="s-1")
    state = state.with_refusals([upload_state.Refusal(code="x")] * 1500)
    assert (len(state.refused), state.refused_count) == (1000, 1500)


def test_a_server_that_names_no_refused_line_has_them_counted(
    tmp_path: Path, cloud: FakeCloud, open_outbox: OpenOutbox
) -> None:
    """The protocol's own four fields alone: two of three received is one refused."""
    write_journal(tmp_path)
    said = {
        "status": "accepted",
        "session_id": "s-1",
        "events_received": 2,
        "duplicates_skipped": 0,
    }
    cloud.next.append(Answer(200, said))
    (state,) = open_outbox().run_due()
    assert (state.received, state.refused_count, state.refused) == (2, 1, [])
    assert state.status is UploadStatus.DONE
