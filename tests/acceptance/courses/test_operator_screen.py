"""What an operator is shown of a publication at another server: over HTTP, and by the command."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from etude.people.scopes import Scope
from etude.store import Database
from etude.testing import web
from etude.testing.installation import furnish
from etude.testing.kills import KillableServer
from etude.testing.nursery import Nursery
from etude.testing.waiting import run_bounded
from etude.web.services import compose

TOKEN = "t" * 40


@pytest.fixture
def school(
    nursery: Nursery, tmp_path: Path, sqlite_copy: Callable[[Path], str]
) -> Iterator[KillableServer]:
    data = tmp_path / "school"
    data.mkdir()
    environment = {"ETUDE_COURSEWARE_PUBLISH_TOKEN": TOKEN}
    server = KillableServer(nursery, furnish(data, sqlite_copy(data)), environment)
    server.start()
    yield server
    server.kill()


def ask(laptop: Any, server: str, *asked: tuple[str, str]) -> list[httpx2.Response]:
    """Ask the laptop's own server one thing after the other, as its operator."""

    async def go() -> list[httpx2.Response]:
        settings = laptop.settings(server)
        async with await Database.open(laptop.database_url) as database:
            services = compose(settings.model_copy(update={"role": "ops"}), database)
            token = await web.service_token(database, Scope.OPERATE, name=f"o{len(asked)}")
            async with web.client(services, token=token) as client:
                return [await client.request(method, path) for method, path in asked]

    return asyncio.run(go())


def command(laptop: Any, server: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run_bounded(
        [sys.executable, "-m", "etude", *words],
        env=os.environ | laptop.environment(server),
        capture_output=True,
        text=True,
    )


def test_the_servers_reasons_reach_the_screen(laptop: Any, school: KillableServer) -> None:
    """Ready, published, drifted; damaged there: every reason with its module, in both faces."""
    path = f"/api/courses/{laptop.course_id}"
    ready, published, shown = ask(
        laptop, school.url, ("GET", f"{path}/readiness"), ("POST", f"{path}/publish"), ("GET", path)
    )
    assert ready.json()["ready"], ready.text
    assert published.json()["version"] == 1, published.text
    told = shown.json()
    assert (told["publishedVersion"], told["publishedTo"]) == (1, school.url)
    assert told["publishedAt"] is not None
    assert told["driftedModules"] == []
    blobs = [one for one in (school.installation.data / "blobs").rglob("*") if one.is_file()]
    for blob in blobs:
        content = bytearray(blob.read_bytes())
        content[len(content) // 2] ^= 1
        blob.write_bytes(content)
    (refused,) = ask(laptop, school.url, ("POST", f"{path}/publish"))
    assert refused.status_code == 409
    problem = refused.json()
    assert (problem["code"], problem["earliestFailedIndex"]) == ("PUBLISH_REFUSED", 0)
    assert [(one["moduleIndex"], one["code"]) for one in problem["errors"]] == [
        (index, "BUNDLE_DAMAGED") for index in range(4)
    ]
    done = command(laptop, school.url, "course", "publish", laptop.course_id)
    assert done.returncode == 1
    assert done.stderr.count("[BUNDLE_DAMAGED]") == 4


def test_a_drift_is_seen_and_a_server_that_is_away(laptop: Any, school: KillableServer) -> None:
    """What changed on the laptop since is shown without asking the server, which may be away."""
    path = f"/api/courses/{laptop.course_id}"
    ask(laptop, school.url, ("POST", f"{path}/publish"))
    (shown,) = ask(laptop, school.url, ("GET", path))
    classroom = laptop.data / "classrooms" / f"{shown.json()['modules'][2]['classroomId']}.json"
    document = json.loads(classroom.read_bytes())
    document["stage"]["description"] = "Another description"
    classroom.write_bytes(json.dumps(document).encode())
    school.kill()
    shown, ready, refused = ask(
        laptop, school.url, ("GET", path), ("GET", f"{path}/readiness"), ("POST", f"{path}/publish")
    )
    assert shown.json()["driftedModules"] == [2]
    codes = [one["code"] for one in ready.json()["blockers"]]
    assert codes[0] == "PUBLISH_SERVER_UNREACHABLE"
    assert {"SEMANTIC_DRIFT", "SOURCE_DRIFT"} <= set(codes)
    assert refused.json()["code"] == "PUBLISH_REFUSED"  # the gates here come first
    said = json.loads(
        command(laptop, school.url, "course", "status", laptop.course_id, "--json").stdout
    )
    assert (said["published_to"], said["drifted_modules"]) == (school.url, [2])
