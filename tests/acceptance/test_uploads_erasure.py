"""A learner erased over HTTP while the whole installation runs: nothing of them is left."""

import asyncio
from hashlib import sha256
from os import urandom
from pathlib import Path

import httpx2

from etude.store import upgrade
from etude.testing.installation import furnish
from etude.testing.school import body, event
from etude.testing.server import ServerProcess

SESSION = "s-of-wilhelmina-4711"
NAME = "Wilhelmina Übermut"
WORDS = "my fingers hurt on the low string"
SECRET_EVENT = "e-wilhelmina-began"
NDJSON = {"Content-Type": "application/x-ndjson"}
WAV = {"Content-Type": "audio/wav"}


def practise(
    client: httpx2.Client, session_id: str, audio: bytes, words: str, first: str = "e00001"
) -> bytes:
    """Upload a session with a comment, a conflict and a recording; return its events."""
    name = sha256(audio).hexdigest()
    sent = body(
        event(session_id, 1, event_id=first, meta={"media": [{"sha256": name}]}),
        *(event(session_id, number) for number in range(2, 40)),
        event(session_id, 40, signal="self_assessment", value={"student_comment": words}),
    )
    path = f"/api/v1/sessions/{session_id}"
    assert client.post(f"{path}/events", content=sent, headers=NDJSON).status_code == 200
    other = body(event(session_id, 2, value={"student_comment": f"{words}, again"}))
    told = client.post(f"{path}/events", content=other, headers=NDJSON).json()
    assert told["conflicts"] == ["e00002"]
    assert client.put(f"{path}/media/{name}", content=audio, headers=WAV).status_code == 201
    return sent


def places_of(folder: Path, needles: dict[str, bytes]) -> set[str]:
    """Names of the needles that some file below `folder` holds, or has in its name, and where."""
    found = set()
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for name, needle in needles.items():
            if needle in content or needle in str(path.relative_to(folder)).encode():
                found.add(f"{name} in {path.relative_to(folder)}")
    return found


def test_nothing_of_an_erased_learner_is_left(tmp_path: Path) -> None:
    """Name, ids, words, audio: gone from database, WAL, blobs, logs; a re-upload is 410."""
    data = tmp_path / "data"
    data.mkdir()
    url = f"sqlite:///{data / 'etude.db'}"
    asyncio.run(upgrade(url))
    installation = furnish(data, url)
    audio, others_audio = urandom(200_000), urandom(50_000)
    with (
        ServerProcess(data, command="serve") as server,
        installation.client(server.url, "operator") as operator,
        installation.client(server.url, "toy-2") as other_toy,
    ):
        added = operator.post("/api/v1/learners", json={"display_name": NAME}).json()
        learner = added["learner_id"]
        wanted = {
            "kind": "learner",
            "principal_id": learner,
            "scopes": ["sessions:write", "sessions:read"],
            "label": f"phone of {NAME}",
        }
        token = operator.post("/api/v1/tokens", json=wanted).json()["token"]
        header = {"Authorization": f"Bearer {token}"}
        needles = {
            "name": NAME.encode(),
            "first name": b"Wilhelmina",
            "id": learner.encode(),
            "session": SESSION.encode(),
            "event": SECRET_EVENT.encode(),
            "words": WORDS.encode(),
            "audio": audio[:32],
            "audio's end": audio[-32:],
            "audio's digest": sha256(audio).hexdigest().encode(),
            "token": token.encode(),
        }
        held = {"learner_id": learner, "starts_at": "2026-01-01T00:00:00Z"}
        operator.post("/api/v1/devices", json={"device_id": "toy-9", "name": "Toy 9"})
        assert operator.post("/api/v1/devices/toy-9/holders", json=held).status_code == 201
        toy_9 = {"kind": "device", "principal_id": "toy-9", "scopes": ["sessions:write"]}
        toy_token = operator.post("/api/v1/tokens", json=toy_9).json()["token"]
        with httpx2.Client(base_url=server.url, headers=header, trust_env=False) as own:
            sent = practise(own, SESSION, audio, WORDS, SECRET_EVENT)
            practise(other_toy, "s-ben-1", others_audio, "ben has nothing to say")
            assert operator.get(f"/api/v1/sessions/{SESSION}").json()["learner_id"] == learner
            before = {place.partition(" in ")[0] for place in places_of(data, needles)}
            assert before == set(needles) - {"token"}  # the search finds what is there

            erased = operator.delete(f"/api/v1/learners/{learner}")
            assert (erased.status_code, erased.json()["status"]) == (202, "erased")
            server.wait_for("jobs.done", lambda line: line.get("kind") == "people.scrub")

            assert places_of(data, needles) == set()
            logged = server.log_text().encode()
            assert [name for name, needle in needles.items() if needle in logged] == []

            again = own.post(f"/api/v1/sessions/{SESSION}/events", content=sent, headers=NDJSON)
            assert again.status_code == 410
        refused = other_toy.post(f"/api/v1/sessions/{SESSION}/events", content=sent, headers=NDJSON)
        assert (refused.status_code, refused.json()["code"]) == (410, "SESSION_ERASED")
        late = other_toy.post(
            "/api/v1/sessions/never-seen/events",
            content=sent.replace(SESSION.encode(), b"never-seen"),
            headers=NDJSON | {"Authorization": f"Bearer {toy_token}"},
        )
        assert (late.status_code, late.json()["code"]) == (410, "LEARNER_ERASED")
        assert operator.get(f"/api/v1/sessions/{SESSION}").status_code == 410
        assert operator.get(f"/api/v1/learners/{learner}").status_code == 410
        kept = other_toy.get("/api/v1/sessions/s-ben-1/events").content.splitlines()
        assert len(kept) == 40
        media = f"/api/v1/sessions/s-ben-1/media/{sha256(others_audio).hexdigest()}"
        assert other_toy.get(media).content == others_audio
        # Also what was sent again and refused is nowhere.
        assert places_of(data, needles) == set()
        assert server.stop() == 0
    assert places_of(data, needles) == set()
