"""Recordings over HTTP: put once, refused when they are not what the path says, given back."""

from collections.abc import Iterator
from hashlib import sha256
from os import urandom

import httpx2
import pytest

from etude.testing.installation import Served
from etude.testing.school import body, event

MAX_BYTES = 32 * 1024 * 1024
WAV = {"Content-Type": "audio/wav"}


@pytest.fixture
def recorded(toy: httpx2.Client, session_id: str) -> str:
    """A session with one event; the path of its recordings."""
    path = f"/api/v1/sessions/{session_id}"
    toy.post(
        f"{path}/events",
        content=body(event(session_id, 1)),
        headers={"Content-Type": "application/x-ndjson"},
    )
    return f"{path}/media"


def problem(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def test_a_recording_put_twice_is_kept_once(toy: httpx2.Client, recorded: str) -> None:
    """201, then 200; listed once; the same bytes and type come back."""
    data = urandom(100_000)
    path = f"{recorded}/{digest(data)}"
    first, second = (toy.put(path, content=data, headers=WAV) for _ in range(2))
    assert (first.status_code, first.json()["status"]) == (201, "stored")
    assert (second.status_code, second.json()["status"]) == (200, "present")
    (kept,) = toy.get(recorded.removesuffix("/media")).json()["media"]
    assert (kept["sha256"], kept["size_bytes"]) == (digest(data), 100_000)
    back = toy.get(path)
    assert (back.content, back.headers["content-type"]) == (data, "audio/wav")


def test_the_same_recording_of_two_sessions_is_each_ones(
    toy: httpx2.Client, recorded: str, served: Served
) -> None:
    """A digest that another session has says nothing about this one: 404 until it is put here."""
    data = urandom(1000)
    toy.put(f"{recorded}/{digest(data)}", content=data, headers=WAV)
    with served.client("toy-2") as other:
        session_id = f"{recorded.split('/')[4]}-other"
        other.post(
            f"/api/v1/sessions/{session_id}/events",
            content=body(event(session_id, 1)),
            headers={"Content-Type": "application/x-ndjson"},
        )
        path = f"/api/v1/sessions/{session_id}/media/{digest(data)}"
        assert problem(other.get(path)) == (404, "MEDIA_UNKNOWN")
        assert other.put(path, content=data, headers=WAV).status_code == 201
        assert other.get(path).content == data


def test_other_bytes_than_the_path_names_are_refused(toy: httpx2.Client, recorded: str) -> None:
    """Nothing is kept: not under the name in the path, not under their own."""
    wanted, sent = digest(b"wanted"), b"something else"
    answer = toy.put(f"{recorded}/{wanted}", content=sent, headers=WAV)
    assert problem(answer) == (409, "BLOB_DIGEST_MISMATCH")
    for name in (wanted, digest(sent)):
        assert problem(toy.get(f"{recorded}/{name}")) == (404, "MEDIA_UNKNOWN")


def _chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536):
        yield bytes(65_536)
    yield bytes(size % 65_536)


def test_the_largest_recording_fits_and_one_byte_more_does_not(
    served: Served, toy: httpx2.Client, recorded: str
) -> None:
    """32 MiB are taken; more is 413, announced or not, and nothing of it stays on the disk."""
    largest = bytes(MAX_BYTES)
    name = digest(largest)
    assert toy.put(f"{recorded}/{name}", content=largest, headers=WAV).status_code == 201
    data = served.installation.data
    before = {path for path in data.rglob("*") if path.is_file() and path.stat().st_size > 60_000}
    too_large = bytes(MAX_BYTES + 1)
    name = digest(too_large)
    announced = toy.put(f"{recorded}/{name}", content=too_large, headers=WAV)
    assert announced.status_code == 413
    with served.client("toy-1") as client:
        silent = client.put(f"{recorded}/{name}", content=_chunks(MAX_BYTES + 1), headers=WAV)
    assert silent.status_code == 413
    after = {path for path in data.rglob("*") if path.is_file() and path.stat().st_size > 60_000}
    assert {path for path in after - before if "blobs" in path.parts} == set()


@pytest.mark.parametrize("kind", [None, "", "sound", "audio/wav\t;", "text html"])
def test_a_recording_needs_a_content_type(
    toy: httpx2.Client, recorded: str, kind: str | None
) -> None:
    """Without a usable one nobody could play it: refused, not guessed."""
    data = urandom(10)
    headers = {} if kind is None else {"Content-Type": kind}
    answer = toy.put(f"{recorded}/{digest(data)}", content=data, headers=headers)
    usable = kind is not None and kind.partition(";")[0].strip() == "audio/wav"
    assert answer.status_code == 201 if usable else problem(answer) == (400, "MEDIA_TYPE_MISSING")


@pytest.mark.parametrize("name", ["0" * 63, "G" * 64, "A" * 64, "0" * 65])
def test_a_path_without_a_digest_is_refused(toy: httpx2.Client, recorded: str, name: str) -> None:
    """64 lower-case hexadecimal digits, nothing else."""
    answer = toy.put(f"{recorded}/{name}", content=b"x", headers=WAV)
    assert problem(answer) == (400, "MEDIA_DIGEST_INVALID")


def test_a_recording_needs_its_session_first(toy: httpx2.Client, session_id: str) -> None:
    """The outbox sends events first: 404 for a session that nobody has heard of."""
    answer = toy.put(
        f"/api/v1/sessions/{session_id}/media/{digest(b'x')}", content=b"x", headers=WAV
    )
    assert problem(answer) == (404, "SESSION_UNKNOWN")


@pytest.mark.parametrize("sender", ["toy-2", "ben"])
def test_nobody_puts_a_recording_into_a_foreign_session(
    served: Served, toy: httpx2.Client, recorded: str, sender: str
) -> None:
    """403 to put, 404 to get: a digest alone opens nothing."""
    data = urandom(10)
    toy.put(f"{recorded}/{digest(data)}", content=data, headers=WAV)
    with served.client(sender) as other:
        answer = other.put(f"{recorded}/{digest(b'mine')}", content=b"mine", headers=WAV)
        assert problem(answer) == (403, "SESSION_FOREIGN")
        answer = other.get(f"{recorded}/{digest(data)}")
        assert problem(answer) == (404, "SESSION_UNKNOWN")
