"""Uploads as a device sees them: the protocol's own samples, repeats, conflicts, bad lines."""

import gzip
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
import zstandard

from etude.testing.installation import Served
from etude.testing.samples import Sample, import_triple, sample_lines
from etude.testing.school import body, event

NDJSON = {"Content-Type": "application/x-ndjson"}


def send(client: httpx2.Client, session_id: str, content: bytes, **headers: str) -> httpx2.Response:
    return client.post(
        f"/api/v1/sessions/{session_id}/events", content=content, headers=NDJSON | headers
    )


def exported(client: httpx2.Client, session_id: str) -> list[bytes]:
    answer = client.get(f"/api/v1/sessions/{session_id}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    return answer.content.splitlines()


def of_session(lines: list[bytes], session_id: str) -> list[bytes]:
    """The same lines for a session of the test's own; nothing else of them changes."""
    sent = json.loads(lines[0])["session_id"]
    old, new = json.dumps(sent).encode(), json.dumps(session_id).encode()
    return [line.replace(b'"session_id":' + old, b'"session_id":' + new) for line in lines]


def meaning(lines: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]


def violin(session_id: str) -> list[bytes]:
    return of_session(sample_lines("violin-3min"), session_id)


def counted(answer: httpx2.Response) -> tuple[int, int, int, int]:
    """Received, duplicates, rejected, conflicts."""
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return (
        told["events_received"],
        told["duplicates_skipped"],
        told["events_rejected"],
        len(told["conflicts"]),
    )


def problem(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def test_the_violin_session_comes_back_word_for_word(toy: httpx2.Client, session_id: str) -> None:
    """13 lines up, the same 13 bytes for byte down, `e008` with its two `value` keys included."""
    lines = violin(session_id)
    answer = send(toy, session_id, b"\n".join(lines) + b"\n")
    assert answer.json() == {
        "status": "accepted",
        "session_id": session_id,
        "events_received": 13,
        "duplicates_skipped": 0,
        "events_rejected": 0,
        "errors": [],
        "conflicts": [],
        "watermark": None,
    }
    back = exported(toy, session_id)
    assert back == lines
    assert meaning(back)[7]["value"]["edge_assessment"] == "possible_issue"


def test_the_violin_session_is_recapped_by_the_stated_rules(
    toy: httpx2.Client, session_id: str
) -> None:
    """Preparation 2/0/0, operation 4/1/0, cleanup 0/0/0; no doubtful event among the highlights."""
    send(toy, session_id, b"\n".join(violin(session_id)))
    told = toy.get(f"/api/v1/sessions/{session_id}/recap").json()
    assert told["phase_summary"] == {
        "preparation": {"positive": 2, "uncertain": 0, "issue": 0},
        "operation": {"positive": 4, "uncertain": 1, "issue": 0},
        "cleanup": {"positive": 0, "uncertain": 0, "issue": 0},
    }
    assert 1 <= len(told["highlights"]) <= 3
    assert "e008" not in json.dumps(told["highlights"])


@pytest.mark.parametrize("sample", ["phase-timeout", "triples"])
def test_the_other_samples_load(toy: httpx2.Client, session_id: str, sample: Sample) -> None:
    """The time-out line as it stands, the triples through their importer; equal when exported."""
    lines = sample_lines(sample)
    lines = (
        import_triple(lines, session_id) if sample == "triples" else of_session(lines, session_id)
    )
    assert counted(send(toy, session_id, b"\n".join(lines))) == (len(lines), 0, 0, 0)
    assert meaning(exported(toy, session_id)) == meaning(lines)
    assert toy.get(f"/api/v1/sessions/{session_id}/recap").status_code == 200


def test_an_upload_twice_is_stored_once(toy: httpx2.Client, session_id: str) -> None:
    """The second answer counts 13 received, 13 of them duplicates."""
    content = b"\n".join(violin(session_id))
    assert counted(send(toy, session_id, content)) == (13, 0, 0, 0)
    assert counted(send(toy, session_id, content)) == (13, 13, 0, 0)
    assert exported(toy, session_id) == violin(session_id)


def test_overlapping_halves_are_stored_once(toy: httpx2.Client, session_id: str) -> None:
    """The later half first, then an earlier one that overlaps by two; order is by the session."""
    events = [event(session_id, number) for number in range(1, 21)]
    first = send(toy, session_id, body(*events[9:]))
    assert counted(first) == (11, 0, 0, 0)
    assert first.json()["watermark"] == 0
    shown = toy.get(f"/api/v1/sessions/{session_id}").json()
    assert shown["gaps"] == [[1, 9]]
    second = send(toy, session_id, body(*events[:11]))
    assert counted(second) == (11, 2, 0, 0)
    assert second.json()["watermark"] == 20
    assert meaning(exported(toy, session_id)) == events
    assert toy.get(f"/api/v1/sessions/{session_id}").json()["gaps"] == []


@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_any_repeats_are_stored_once(
    toy: httpx2.Client, session_id: str, seed: int
) -> None:
    """Shuffled lines in pieces, some sent again: received = stored + duplicates, order by `seq`."""
    chance = random.Random(seed)
    events = [event(session_id, number) for number in range(1, 61)]
    sent = events + chance.choices(events, k=40)
    chance.shuffle(sent)
    received = duplicates = 0
    while sent:
        size = chance.randint(1, 17)
        piece, sent = sent[:size], sent[size:]
        got = counted(send(toy, session_id, body(*piece)))
        assert got[0] == len(piece)
        received, duplicates = received + got[0], duplicates + got[1]
    assert (received, duplicates) == (100, 40)
    assert meaning(exported(toy, session_id)) == events


def test_four_clients_at_once_store_once(served: Served, session_id: str) -> None:
    """Four connections, each sending all of it in its own order: the answers' counts add up."""
    events = [event(session_id, number) for number in range(1, 201)]

    def upload(seed: int) -> tuple[int, int]:
        order = random.Random(seed).sample(range(0, 200, 20), 10)
        with served.client("toy-1") as client:
            parts = [counted(send(client, session_id, body(*events[at : at + 20]))) for at in order]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)

    with ThreadPoolExecutor(4) as clients:
        told = list(clients.map(upload, range(4)))
    assert sum(received for received, _ in told) == 800
    assert sum(duplicates for _, duplicates in told) == 600
    with served.client("toy-1") as client:
        assert meaning(exported(client, session_id)) == events
        assert client.get(f"/api/v1/sessions/{session_id}").json()["events"] == 200


def test_other_content_under_an_id_is_named_and_kept_aside(
    toy: httpx2.Client, operator: httpx2.Client, session_id: str
) -> None:
    """The first stays, the answer names the id, an operator reads the newcomer, nobody else."""
    first, other = event(session_id, 1), event(session_id, 1, confidence=0.2)
    send(toy, session_id, body(first))
    answer = send(toy, session_id, body(other, event(session_id, 2)))
    assert counted(answer) == (2, 0, 0, 1)
    assert answer.json()["conflicts"] == ["e00001"]
    assert meaning(exported(toy, session_id)) == [first, event(session_id, 2)]
    path = f"/api/v1/sessions/{session_id}/quarantine"
    assert problem(toy.get(path)) == (403, "FORBIDDEN_SCOPE")
    (kept,) = operator.get(path).json()["items"]
    assert (kept["event_id"], json.loads(kept["line"])) == ("e00001", other)


def test_the_same_meaning_written_differently_is_a_duplicate(
    toy: httpx2.Client, session_id: str
) -> None:
    """Other key order, spaces, escapes and `1.0` for `1` are the same event (RFC 8785)."""
    sent = event(session_id, 1, note="é")
    send(toy, session_id, body(sent))
    again = json.dumps(dict(reversed(sent.items())) | {"ts": 1}, indent=None).encode()
    assert counted(send(toy, session_id, again.replace(b": ", b" :  "))) == (1, 1, 0, 0)


POISON = {
    "invalid_json": lambda _: b'{"event_id":"x","session_id"',
    "missing_field": lambda s: json.dumps({"event_id": "x", "session_id": s, "ts": 1}).encode(),
    "bad_type": lambda s: body(event(s, 9, ts="soon")).strip(),
    "wrong_session": lambda _: body(event("another", 9)).strip(),
    "too_long": lambda s: body(event(s, 9, note="x" * 65_536)).strip(),
}


@pytest.mark.parametrize(("code", "poison"), POISON.items(), ids=POISON)
def test_a_poisoned_line_blocks_no_neighbour(
    toy: httpx2.Client, session_id: str, code: str, poison: Callable[[str], bytes]
) -> None:
    """It is refused by itself with its number and code; lines before and behind it are stored."""
    content = body(event(session_id, 1)) + poison(session_id) + b"\n" + body(event(session_id, 2))
    answer = send(toy, session_id, content)
    assert counted(answer) == (2, 0, 1, 0)
    (error,) = answer.json()["errors"]
    assert (error["line"], error["code"]) == (2, code)
    assert len(exported(toy, session_id)) == 2


def test_nothing_but_bad_lines_is_422(toy: httpx2.Client, session_id: str) -> None:
    """The first 20 of them are named, and no session comes of it."""
    answer = send(toy, session_id, b"nonsense\n" * 30)
    assert problem(answer) == (422, "NO_VALID_LINE")
    assert len(answer.json()["errors"]) == 20
    assert toy.get(f"/api/v1/sessions/{session_id}").status_code == 404


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n \r\n\n"])
def test_an_empty_body_is_accepted_with_zeros(
    toy: httpx2.Client, session_id: str, content: bytes
) -> None:
    """200, nothing counted, no session made."""
    assert counted(send(toy, session_id, content)) == (0, 0, 0, 0)
    assert toy.get(f"/api/v1/sessions/{session_id}").status_code == 404


def test_windows_line_ends_are_no_content(toy: httpx2.Client, session_id: str) -> None:
    """CRLF, blank lines and a missing last line end change nothing."""
    content = body(*(event(session_id, number) for number in (1, 2))).replace(b"\n", b"\r\n\r\n")
    assert counted(send(toy, session_id, content.strip())) == (2, 0, 0, 0)
    assert counted(send(toy, session_id, body(event(session_id, 1)))) == (1, 1, 0, 0)


@pytest.mark.parametrize("sender", ["toy-2", "ben", "anna"])
def test_a_foreign_sender_is_refused(
    served: Served, toy: httpx2.Client, session_id: str, sender: str
) -> None:
    """403 for another toy, another learner, and the learner herself; only she may read it."""
    send(toy, session_id, body(event(session_id, 1)))
    with served.client(sender) as other:
        answer = send(other, session_id, body(event(session_id, 2)))
        assert problem(answer) == (403, "SESSION_FOREIGN")
        read = other.get(f"/api/v1/sessions/{session_id}").status_code
        assert read == (200 if sender == "anna" else 404)
    assert len(exported(toy, session_id)) == 1


def test_a_learner_may_contest_what_a_toy_recorded(
    served: Served, toy: httpx2.Client, session_id: str
) -> None:
    """Contests of the session's own learner are taken; a contest that carries more is not."""
    send(toy, session_id, body(event(session_id, 1)))
    contest = event(session_id, 2, event_type="signal_contested", correlation_id="e00001")
    with served.client("anna") as anna, served.client("ben") as ben:
        assert problem(send(ben, session_id, body(contest))) == (403, "SESSION_FOREIGN")
        more = body(contest, event(session_id, 3))
        assert problem(send(anna, session_id, more)) == (403, "SESSION_FOREIGN")
        assert counted(send(anna, session_id, body(contest))) == (1, 0, 0, 0)
    assert meaning(exported(toy, session_id)) == [event(session_id, 1), contest]


def test_a_gateway_uploads_for_the_toy_it_names(
    served: Served, toy: httpx2.Client, session_id: str
) -> None:
    """The session is the toy's: both may go on with it; without a name it is refused."""
    with served.client("gateway") as gateway:
        refused = send(gateway, session_id, body(event(session_id, 1)))
        assert problem(refused) == (403, "DEVICE_NOT_NAMED")
        named = {"Etude-Device": "toy-1"}
        assert counted(send(gateway, session_id, body(event(session_id, 1)), **named))[0] == 1
    assert counted(send(toy, session_id, body(event(session_id, 2))))[0] == 1
    shown = toy.get(f"/api/v1/sessions/{session_id}").json()
    assert (shown["device_id"], shown["learner_id"], shown["events"]) == ("toy-1", "anna", 2)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
def test_packed_bodies_are_unpacked(
    toy: httpx2.Client, session_id: str, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    """The same answer and the same bytes back as without."""
    lines = violin(session_id)
    content = pack(b"\n".join(lines))
    assert counted(send(toy, session_id, content, **{"Content-Encoding": encoding}))[0] == 13
    assert exported(toy, session_id) == lines
