"""What every publisher holds to: the one that publishes here, and the one at another server."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import SecretStr

from etude.courseware import receipts
from etude.courseware.errors import (
    PublishRefusedError,
    PublishTokenMissingError,
    SourceChangedError,
)
from etude.courseware.gates import CourseSource
from etude.courseware.publishers import publisher_for
from etude.courseware.publishing import Publisher
from etude.courseware.remote_errors import PublishCancelledError
from etude.courseware.sending import RemotePublisher
from etude.files import armed
from etude.people.audit import list_audit
from etude.people.records import HOST, Actor
from etude.settings import Settings
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.courseware import course, document, lay_out, module
from etude.testing.databases import TemplateDatabases
from etude.testing.installation import furnish
from etude.testing.kills import KillableServer
from etude.testing.nursery import Nursery

Run = Callable[..., Any]
TOKEN = "t" * 32


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with Nursery(tmp_path_factory.mktemp("nursery")) as running:
        yield running


LI = Actor(kind="staff", key=7, token_key=3)


class Maker:
    """Who makes courses, with a publisher of the kind that the test is about."""

    def __init__(self, database: Database, run: Run, root: Path, server: str | None) -> None:
        self.database, self.run, self.root, self.server = database, run, root, server
        self.classrooms = self.settings().classrooms
        self.classrooms.mkdir(parents=True)
        self.clock = ManualClock()

    def settings(self, token: str = TOKEN) -> Settings:
        return Settings(
            data=self.root,
            courseware_publish_token=SecretStr(token),
            course_publish_server_base_url=self.server,
        )

    def publisher(self, token: str = TOKEN) -> Any:
        return publisher_for(self.settings(token), self.database, self.clock)

    def publish(self, source: CourseSource) -> Any:
        return self.run(self.publisher().publish(source, LI))

    def entered(self) -> list[tuple[Any, ...]]:
        async def read() -> Any:
            async with self.database.read() as connection:
                return (await list_audit(connection)).items

        return [(one.actor, one.action, one.subject, one.detail) for one in self.run(read())]

    def receipt(self) -> Any:
        async def read() -> Any:
            async with self.database.read() as connection:
                return await receipts.newest(connection, "harbour", self.publisher().target)

        return self.run(read())


@pytest.fixture(params=["here", "there"])
def maker(
    request: pytest.FixtureRequest, nursery: Nursery, sqlite_url: str, run: Run, tmp_path: Path
) -> Iterator[Maker]:
    server = None
    if request.param == "there":
        data = tmp_path / "school"
        data.mkdir()
        templates = TemplateDatabases(Path(os.environ["ETUDE_TEST_FOLDER"]))
        url = templates.copy_sqlite(data / "etude.db")
        school = KillableServer(
            nursery, furnish(data, url), {"ETUDE_COURSEWARE_PUBLISH_TOKEN": TOKEN}
        )
        school.start()
        server = school.url
    database = run(Database.open(sqlite_url))
    made = Maker(database, run, tmp_path / "maker", server)
    kind = RemotePublisher if server else Publisher
    assert isinstance(made.publisher(), kind)
    yield made
    run(database.close())


def test_published_and_noted(maker: Maker) -> None:
    """Versions from 1, new once; the receipt has every hash, and the sources it was made from."""
    source = course(maker.classrooms, modules=3)
    first, again = maker.publish(source), maker.publish(source)
    assert (first.new, again.new) == (True, False)
    assert again.manifest == first.manifest
    assert [one.courseware_version for one in first.manifest.modules] == [1, 1, 1]
    kept = maker.receipt()
    assert (kept.version, kept.manifest_hash) == (1, first.manifest_hash)
    assert [one.content_hash for one in kept.modules] == [
        one.content_hash for one in first.manifest.modules
    ]
    assert [one.source_revision_hash for one in kept.modules] == [
        one.source_revision_hash for one in source.modules
    ]


def test_who_published_which_version(maker: Maker) -> None:
    """Each new version stands once in the audit log, as published by whoever asked for it."""
    source = course(maker.classrooms)
    maker.publish(source)
    maker.publish(source)
    told = {"course": "harbour"}
    assert maker.entered() == [(LI, "course.published", ("manifest", 1), told)]
    maker.publish(msgspec.structs.replace(source, title="The harbour, again"))
    assert maker.entered()[1:] == [(LI, "course.published", ("manifest", 2), told)]


def test_only_what_changed_moves(maker: Maker) -> None:
    """A module that changed gets a version, its neighbours keep theirs."""
    source = course(maker.classrooms)
    maker.publish(source)
    lay_out(maker.classrooms, document("harbour_1", "Module 1, again"), number=10)
    last = module(maker.classrooms, "harbour_1", source.modules[1].continuity or ())
    second = maker.publish(msgspec.structs.replace(source, modules=(source.modules[0], last)))
    assert second.manifest.version == 2
    assert [one.courseware_version for one in second.manifest.modules] == [1, 2]
    assert maker.receipt().version == 2


def test_every_failure_at_once(maker: Maker) -> None:
    """Readiness and publication tell the same failures; nothing is noted."""
    source = course(maker.classrooms, modules=3)
    (maker.classrooms / "harbour_0" / "media" / "moon.png").write_bytes(b"GIF89a")
    (maker.classrooms / "harbour_2.json").unlink()
    with pytest.raises(PublishRefusedError) as caught:
        maker.publish(source)
    told = [(one.params["moduleIndex"], one.code) for one in caught.value.parts]
    assert told[0] == (0, "SOURCE_DRIFT")
    assert told[-1] == (2, "CLASSROOM_UNREADABLE")
    assert caught.value.params["earliestFailedIndex"] == 0
    ready = maker.run(maker.publisher().readiness(source))
    assert [one.code for one in ready.blockers] == [code for _, code in told]
    assert maker.receipt() is None


def test_no_token_no_publication(maker: Maker) -> None:
    """Without a usable token nothing is looked at or asked, and readiness says so alone."""
    source = course(maker.classrooms)
    publisher = maker.publisher("short")
    for act in (publisher.publish(source, HOST), _required(publisher)):
        with pytest.raises(PublishTokenMissingError):
            maker.run(act)
    ready = maker.run(publisher.readiness(source))
    assert [one.code for one in ready.blockers] == ["PUBLISH_TOKEN_NOT_CONFIGURED"]


async def _required(publisher: Any) -> None:
    publisher.require_token()


def test_a_change_meanwhile(maker: Maker) -> None:
    """A classroom that changes after it was frozen: nothing is published or noted."""
    source = course(maker.classrooms)

    def change(name: str) -> None:
        if name in {"courseware.bundles.stored", "courseware.publish.sending"}:
            (maker.classrooms / "harbour_1" / "media" / "new.png").write_bytes(b"new")

    with armed(change), pytest.raises(SourceChangedError):
        maker.publish(source)
    assert maker.receipt() is None


def test_cancelled_before_its_end(maker: Maker) -> None:
    """Who may not end it any more publishes nothing and notes nothing."""
    source = course(maker.classrooms)

    async def not_allowed(_work: Any) -> None:
        raise PublishCancelledError

    with pytest.raises(PublishCancelledError):
        maker.run(maker.publisher().publish(source, HOST, not_allowed))
    assert (maker.receipt(), maker.entered()) == (None, [])
    assert maker.publish(source).manifest.version == 1
