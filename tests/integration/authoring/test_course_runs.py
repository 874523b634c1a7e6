"""Courses from request to modules, with kills, cancellations and retries; on both databases.

The first four of the invariants (`tests/acceptance/courses/test_invariants.py`) come first.
"""

import asyncio
import hashlib
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.authoring import repository
from etude.authoring.authors import ModuleOrder, OutlineAuthor
from etude.authoring.courses import Courses
from etude.authoring.errors import (
    ContinuityBrokenError,
    CourseAudioMissingError,
    CourseNoRunError,
    CourseRunActiveError,
    CourseStateError,
    FrameworkChangedError,
    FrameworkInvalidError,
    MaterialTooLittleError,
)
from etude.authoring.framework import CourseFramework
from etude.authoring.material import Material
from etude.authoring.publication import courseware_id, publish, source_of, standing
from etude.authoring.records import RUN, Course, CourseRequest, ModuleStatus
from etude.authoring.requirement import MOST, build_module_requirement
from etude.authoring.runs import CourseRuns
from etude.authoring.samples import SAMPLES, sample
from etude.authoring.unwanted import UNWANTED, ModuleRemoval
from etude.authoring.voices import SpokenVoice
from etude.classroom.digest import semantic_hash
from etude.classroom.library import ClassroomLibrary, Draft
from etude.classroom.model import Classroom, InteractiveContent
from etude.clock import RandomIds
from etude.courseware.errors import PublishRefusedError
from etude.courseware.publishing import Publisher
from etude.courseware.receipts import HERE
from etude.errors import EtudeError
from etude.files import armed
from etude.jobs.claims import Claims
from etude.people.records import HOST
from etude.speech.audio import Pcm
from etude.speech.synthesise import Speech
from etude.store import Blobs, Database
from etude.testing.clocks import ManualClock


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


def crash_at(name: str) -> Any:
    def crash(reached: str) -> None:
        if reached == name:
            raise CrashError

    return armed(crash)


class CountingAuthor(OutlineAuthor):
    """Counts what it makes; fails, hangs or leaves the activity out where it is told to."""

    def __init__(self) -> None:
        super().__init__(Path, lambda path: len(path.name))
        self.made: list[int] = []
        self.fails: set[int] = set()
        self.hangs: set[int] = set()
        self.plain: set[int] = set()
        self.hanging = asyncio.Event()

    async def module(self, order: ModuleOrder, draft: Draft) -> Classroom:
        if order.index in self.fails:
            raise RuntimeError
        if order.index in self.hangs:
            self.hanging.set()
            await asyncio.sleep(3600)
        classroom = await super().module(order, draft)
        self.made.append(order.index)
        if order.index in self.plain:
            kept = [
                one for one in classroom.scenes if not isinstance(one.content, InteractiveContent)
            ]
            return msgspec.structs.replace(classroom, scenes=tuple(kept))
        return classroom


class Desk:
    """Somebody who makes courses, and a worker that works when the test says so."""

    def __init__(self, database: Database, run: Callable[..., Any], folder: Path) -> None:
        self.database, self.run = database, run
        self.clock, self.ids = ManualClock(), RandomIds()
        self.library = ClassroomLibrary(folder / "classrooms")
        self.blobs = Blobs(folder / "blobs", self.clock)
        self.author = CountingAuthor()
        authors = {"outline": self.author}
        self.courses = Courses(database, self.library, self.blobs, self.clock, self.ids, authors)
        self.publisher = Publisher(
            database,
            folder / "blobs",
            self.clock,
            classrooms=folder / "classrooms",
            legacy=folder / "legacy",
            token="x" * 32,
        )
        self.runs = CourseRuns(
            database, self.library, self.clock, self.ids, authors, look_every_s=0.02
        )
        self.claims = self._claims()

    def _claims(self, kind: str = RUN) -> Claims:
        return Claims(
            self.database,
            self.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={kind: 10},
            periods_s={},
        )

    async def work(self) -> int:
        jobs = await self.claims.claim(10)
        for job in jobs:
            await self.runs(job)
            await self.claims.finish_rest(job)
        return len(jobs)

    async def removed(self) -> None:
        """Carry out the removals that are due within a minute; a killed one is claimed again."""
        self.clock.advance(120)
        claims = self._claims(UNWANTED)
        for job in await claims.claim(10):
            await ModuleRemoval(self.database, self.library)(job)
            await claims.finish_rest(job)

    def killed(self) -> None:
        """A new worker, after the lease of the dead one."""
        self.clock.advance(60)
        self.claims = self._claims()

    async def course(self, name: str = SAMPLES[0]) -> Course:
        request = CourseRequest(requirement="A course", materials=(sample(name),))
        made = await self.courses.create(request, "staff:o")
        await self.work()
        return await self.courses.get(made.course_id)

    async def finished(self) -> Course:
        course = await self.course()
        await self.courses.start(course.course_id, without_audio=True)
        await self.work()
        return await self.courses.get(course.course_id)


@pytest.fixture
def desk(database: Database, run: Callable[..., Any], tmp_path: Path) -> Desk:
    return Desk(database, run, tmp_path)


def test_until_confirmation_there_is_no_module(desk: Desk) -> None:
    """Invariant 1: the framework stage ends at framework_ready, with no module and no job."""

    async def go() -> None:
        course = await desk.course()
        assert course.status == "framework_ready"
        assert course.framework is not None
        assert {one.status for one in course.modules} == {"pending"}
        assert await desk.work() == 0
        assert desk.author.made == []
        assert desk.library.ids() == ()

    desk.run(go())


def test_modules_have_snapshot_digest_and_exact_refs(desk: Desk) -> None:
    """Invariant 2: each module has its prompt and digest; later ones name exactly the earlier."""

    async def go() -> None:
        course = await desk.finished()
        assert course.status == "succeeded"
        assert course.framework is not None
        assert desk.author.made == [0, 1, 2, 3]
        for module in course.modules:
            spec = course.framework.modules[module.index]
            assert module.status is ModuleStatus.SUCCEEDED
            assert module.prompt == spec.generation_prompt
            assert module.requirement_sha256 is not None
            assert module.digest is not None
            assert module.classroom_id is not None
            stored = desk.library.read(module.classroom_id)
            assert module.digest.semantic_hash == semantic_hash(stored)
            before = course.modules[: module.index]
            assert [(ref.module_index, ref.classroom_id) for ref in module.refs or ()] == [
                (one.index, one.classroom_id) for one in before
            ]

    desk.run(go())


def test_a_failed_module_stops_the_rest(desk: Desk) -> None:
    """Invariant 3: after a failure nothing later is begun; a resume goes on and redoes nothing."""

    async def go() -> None:
        desk.author.fails = {1}
        course = await desk.finished()
        assert course.status == "failed"
        assert [one.status for one in course.modules] == ["succeeded", "failed", *["pending"] * 2]
        assert course.modules[1].error_code == "AUTHOR_FAILED"
        assert len(desk.library.ids()) == 1
        with pytest.raises(ContinuityBrokenError):
            await desk.courses.retry(course.course_id, 2)
        desk.author.fails = set()
        await desk.courses.resume(course.course_id)
        await desk.work()
        assert (await desk.courses.get(course.course_id)).status == "succeeded"
        assert desk.author.made == [0, 1, 2, 3]

    desk.run(go())


def test_a_module_without_activity_is_not_kept(desk: Desk) -> None:
    """Invariant 4: each module has an activity with a page; without one nothing is written."""

    async def go() -> None:
        desk.author.plain = {0}
        course = await desk.finished()
        assert course.modules[0].error_code == "MODULE_WITHOUT_ACTIVITY"
        assert desk.library.ids() == ()
        assert not list((desk.library._folder).glob("*"))

    desk.run(go())


@pytest.mark.parametrize(
    "point",
    [
        "authoring.framework.made", "authoring.framework.noted", "authoring.course.started",
        "authoring.module.begun", "authoring.module.made", "classroom.draft.placed",
        "authoring.module.placed", "authoring.module.noted", "authoring.run.ended",
        "store.transaction.before_commit",
    ],
)  # fmt: skip
def test_a_kill_anywhere_goes_on(  # noqa: C901 - the steps of one story
    desk: Desk, point: str
) -> None:
    """After a kill at any point the course is made to its end; no noted module is made twice."""

    async def step(action: Callable[[], Any]) -> Any:
        for _ in range(3):
            try:
                return await action()
            except CrashError:
                desk.killed()
        return await action()

    async def go() -> None:
        request = CourseRequest(materials=(sample(SAMPLES[0]),))
        made = await desk.courses.create(request, "staff:o")
        crashes = 0

        def crash(reached: str) -> None:
            nonlocal crashes
            if reached == point and crashes < 2:
                crashes += 1
                raise CrashError

        async def work_to_end() -> None:
            while await desk.work():
                pass

        async def start() -> None:
            course = await desk.courses.get(made.course_id)
            if course.status == "framework_ready" and course.active is None:
                await desk.courses.start(made.course_id, without_audio=True)

        with armed(crash):
            await step(work_to_end)
            await step(start)
            await step(work_to_end)
        desk.killed()
        await work_to_end()
        course = await desk.courses.get(made.course_id)
        assert course.status == "succeeded"
        assert course.active is None
        assert crashes
        ids = [one.classroom_id for one in course.modules]
        assert sorted(desk.library.ids()) == sorted(filter(None, ids))
        if point in {"authoring.module.placed", "authoring.module.noted", "classroom.draft.placed"}:
            placed = point != "classroom.draft.placed"
            assert len(desk.author.made) == (4 if placed else 6)

    desk.run(go())


def test_cancel_in_the_middle_of_a_module(desk: Desk) -> None:
    """Cancel ends a module that would take an hour; what succeeded stays, nothing else is left."""

    async def go() -> None:
        desk.author.hangs = {2}
        course = await desk.course()
        await desk.courses.start(course.course_id, without_audio=True)
        working = asyncio.create_task(desk.work())
        await asyncio.wait_for(desk.author.hanging.wait(), 60)
        await desk.courses.cancel(course.course_id)
        await asyncio.wait_for(working, 60)
        course = await desk.courses.get(course.course_id)
        assert course.status == "cancelled"
        assert [one.status for one in course.modules] == [
            *["succeeded"] * 2, "cancelled", "pending",
        ]  # fmt: skip
        assert len(desk.library.ids()) == 2
        with pytest.raises(CourseNoRunError):
            await desk.courses.cancel(course.course_id)
        desk.author.hangs = set()
        await desk.courses.resume(course.course_id)
        await desk.work()
        assert (await desk.courses.get(course.course_id)).status == "succeeded"
        assert desk.author.made == [0, 1, 2, 3]

    desk.run(go())


class OddError(EtudeError):
    """Stands for what may be wrong with a classroom that was placed."""

    code = "COURSE_NO_RUN"


def test_a_cancel_after_the_classroom_is_placed_leaves_nothing(desk: Desk) -> None:
    """A classroom that is in the library, but not noted yet, goes with the run."""

    async def go() -> None:
        course = await desk.course()
        await desk.courses.start(course.course_id, without_audio=True)
        placed, noticed = asyncio.Event(), threading.Event()
        hashes = desk.library.media_hashes

        def slowly(classroom_id: str) -> dict[str, str]:
            noticed.wait(60)
            return hashes(classroom_id)

        def stop(reached: str) -> None:
            if reached == "authoring.module.placed":
                desk.library.media_hashes = slowly  # type: ignore[method-assign]  # holds it there
                placed.set()

        with armed(stop):
            working = asyncio.create_task(desk.work())
            await asyncio.wait_for(placed.wait(), 60)
            assert len(desk.library.ids()) == 1
            await desk.courses.cancel(course.course_id)
            await asyncio.wait_for(working, 60)
        noticed.set()
        desk.library.media_hashes = hashes  # type: ignore[method-assign]  # as it was
        assert desk.library.ids() == ()
        await desk.courses.resume(course.course_id)
        await desk.work()
        assert (await desk.courses.get(course.course_id)).status == "succeeded"
        await desk.removed()
        assert len(desk.library.ids()) == 4

    desk.run(go())


def test_a_failure_after_the_classroom_is_placed_leaves_nothing(desk: Desk) -> None:
    """What fails between library and note takes the classroom along."""

    def fail(reached: str) -> None:
        if reached == "authoring.module.placed":
            raise OddError

    async def go() -> None:
        with armed(fail):
            course = await desk.finished()
        assert (course.status, course.modules[0].error_code) == ("failed", OddError.code)
        assert desk.library.ids() == ()

    desk.run(go())


@pytest.mark.parametrize("removes", [False, True])
def test_a_kill_then_a_cancel_leave_no_classroom(desk: Desk, *, removes: bool) -> None:
    """Nobody is left to remove what a killed worker placed: a job does, killed or not itself."""

    async def go() -> None:
        course = await desk.course()
        await desk.courses.start(course.course_id, without_audio=True)
        with crash_at("authoring.module.placed"), pytest.raises(CrashError):
            await desk.work()
        assert len(desk.library.ids()) == 1
        await desk.courses.cancel(course.course_id)
        await desk.courses.resume(course.course_id)  # forgets the id
        desk.killed()
        if removes:
            with crash_at("authoring.module.removed"), pytest.raises(CrashError):
                await desk.removed()
        await desk.removed()
        assert desk.library.ids() == ()
        await desk.work()
        course = await desk.courses.get(course.course_id)
        assert course.status == "succeeded"
        await desk.removed()
        assert list(desk.library.ids()) == sorted(str(one.classroom_id) for one in course.modules)

    desk.run(go())


def test_a_kill_after_a_failure_leaves_no_classroom(desk: Desk) -> None:
    """The failure is noted, and that its classroom is to go; then the process dies."""

    def die(reached: str) -> None:
        if reached == "authoring.module.placed":
            raise OddError
        if reached == "authoring.run.failed":
            raise CrashError

    async def go() -> None:
        course = await desk.course()
        await desk.courses.start(course.course_id, without_audio=True)
        with armed(die), pytest.raises(CrashError):
            await desk.work()
        assert len(desk.library.ids()) == 1
        desk.killed()
        await desk.removed()
        assert desk.library.ids() == ()

    desk.run(go())


def test_a_worker_that_stops_leaves_the_classroom_to_the_next(desk: Desk) -> None:
    """Nobody cancelled the run: what was placed is taken over, not made again."""

    async def go() -> None:
        course = await desk.course()
        await desk.courses.start(course.course_id, without_audio=True)

        def stop(reached: str) -> None:
            if reached == "authoring.module.placed":
                working.cancel()

        with armed(stop):
            working = asyncio.create_task(desk.work())
            with pytest.raises(asyncio.CancelledError):
                await working
        assert len(desk.library.ids()) == 1
        desk.killed()
        await desk.work()
        assert (await desk.courses.get(course.course_id)).status == "succeeded"
        assert desk.author.made == [0, 1, 2, 3]

    desk.run(go())


def test_a_missing_digest_is_made_up_for(desk: Desk) -> None:
    """A module of an old record that has no digest gets it with the next module's run."""

    async def go() -> None:
        course = await desk.finished()
        async with desk.database.transaction() as work:
            await repository.set_module(work, course.course_key, 0, digest=None)
        found = await desk.publisher.readiness(source_of(await desk.courses.get(course.course_id)))
        assert "SEMANTIC_DRIFT" in {one.code for one in found.blockers}
        await desk.courses.retry(course.course_id, 3)
        with crash_at("authoring.digest.noted"), pytest.raises(CrashError):
            await desk.work()
        desk.killed()
        await desk.work()
        again = await desk.courses.get(course.course_id)
        assert again.modules[0].digest == course.modules[0].digest
        assert (await publish(desk.courses, desk.publisher, course.course_id, HOST)).new

    desk.run(go())


def test_one_run_a_course(desk: Desk) -> None:
    """While anything is done to a course, everything else is refused."""

    async def go() -> None:
        made = await desk.courses.create(CourseRequest(materials=(sample(SAMPLES[0]),)), "staff:o")
        for act in (
            lambda: desk.courses.start(made.course_id),
            lambda: desk.courses.regenerate_framework(made.course_id),
            lambda: desk.courses.resume(made.course_id),
            lambda: desk.courses.retry(made.course_id, 0),
            lambda: publish(desk.courses, desk.publisher, made.course_id, HOST),
        ):
            with pytest.raises((CourseRunActiveError, CourseAudioMissingError)):
                await act()

    desk.run(go())


def test_edit_needs_the_revision_and_keeps_the_rules(desk: Desk) -> None:
    """A framework is edited only as it was read, by its rules, and only before confirmation."""

    async def go() -> None:
        course = await desk.course()
        assert course.framework is not None
        value = plain(course.framework)
        value["courseTitle"] = "Another title"
        value["modules"].reverse()
        for module in value["modules"]:
            module["prerequisites"] = []
            module["incomingKnowledge"] = ["something"]
        with pytest.raises(FrameworkChangedError):
            await desk.courses.edit(course.course_id, 7, value)
        edited = await desk.courses.edit(course.course_id, 1, value)
        assert (edited.title, edited.framework_revision) == ("Another title", 2)
        unknown = plain(course.framework)
        unknown["modules"][3]["moduleId"] = "nobody"
        with pytest.raises(FrameworkInvalidError):
            await desk.courses.edit(course.course_id, 2, unknown)
        await desk.courses.start(course.course_id, revision=2, without_audio=True)
        await desk.work()
        course = await desk.courses.get(course.course_id)
        assert [one.module_id for one in course.modules] == [
            one["moduleId"] for one in value["modules"]
        ]
        assert course.status == "succeeded"
        with pytest.raises(CourseStateError):
            await desk.courses.edit(course.course_id, 2, value)

    desk.run(go())


def test_missing_audio_is_said_before_anything_is_made(desk: Desk) -> None:
    """A course whose sentences have no sound starts only if that is wanted."""

    async def go() -> None:
        course = await desk.course()
        assert len(await desk.courses.silent(course)) == 24
        with pytest.raises(CourseAudioMissingError) as refused:
            await desk.courses.start(course.course_id)
        assert refused.value.params["missing"] == 24

    desk.run(go())


def test_unusable_material_makes_no_course(desk: Desk) -> None:
    """Material that gives no course is refused at once; nothing is stored."""

    async def go() -> None:
        request = CourseRequest(materials=(Material(name="a.txt", text="One."),))
        with pytest.raises(MaterialTooLittleError):
            await desk.courses.create(request, "staff:o")
        assert await desk.courses.listed() == []

    desk.run(go())


def test_publish_pins_what_was_made(desk: Desk) -> None:
    """A finished course is published; again it is the same version; an old manifest stays."""

    async def go() -> None:
        course = await desk.finished()
        first = await publish(desk.courses, desk.publisher, course.course_id, HOST)
        assert (first.new, first.manifest.version, len(first.manifest.modules)) == (True, 1, 4)
        again = await publish(desk.courses, desk.publisher, course.course_id, HOST)
        assert (again.new, again.manifest) == (False, first.manifest)
        course = await desk.courses.get(course.course_id)
        assert (await standing(desk.courses, course, HERE)).drifted == ()
        assert first.manifest.modules[0].courseware_id == courseware_id(
            course.course_id, course.modules[0].module_id
        )

    desk.run(go())


def test_a_module_made_anew_makes_later_ones_stale(desk: Desk) -> None:
    """After a retry of module 1 publishing says CONTINUITY_STALE; regenerate-from is the remedy."""

    async def go() -> None:
        course = await desk.finished()
        await desk.courses.retry(course.course_id, 1)
        await desk.work()
        with pytest.raises(PublishRefusedError) as refused:
            await publish(desk.courses, desk.publisher, course.course_id, HOST)
        assert {part.code for part in refused.value.parts} == {"CONTINUITY_STALE"}
        assert refused.value.params["earliestFailedIndex"] == 2
        assert (await desk.courses.get(course.course_id)).active is None
        await desk.courses.regenerate_from(course.course_id, 2)
        await desk.work()
        assert desk.author.made == [0, 1, 2, 3, 1, 2, 3]
        assert (await publish(desk.courses, desk.publisher, course.course_id, HOST)).new

    desk.run(go())


def test_an_edited_classroom_is_taken_deliberately(desk: Desk) -> None:
    """A layout edit is SOURCE_DRIFT until it is accepted; then the course can be published."""

    async def go() -> None:
        course = await desk.finished()
        last = course.modules[3]
        stored = desk.library.stored(str(last.classroom_id))
        stage = msgspec.structs.replace(stored.classroom.stage, style="other")
        changed = msgspec.structs.replace(stored.classroom, stage=stage)
        desk.library.replace(changed, expected=stored.revision)
        found = await desk.publisher.readiness(source_of(course))
        codes = {one.code for one in found.blockers}
        assert codes == {"SOURCE_DRIFT"}
        course = await desk.courses.accept_source(course.course_id, 3)
        assert (await desk.publisher.readiness(source_of(course))).ready

    desk.run(go())


def speaks(text: str, language: str, rate: float) -> Speech:
    del rate
    sound = Pcm(sample_rate=8000, samples=bytes(16 * (800 + len(text))))
    return Speech(sound=sound, language=language, engine="test", model="test", licence="CC0")


def test_a_voice_speaks_what_has_no_recording(desk: Desk) -> None:
    """A narrated course has a sound for every speech and sentence, and can be published."""

    async def go() -> None:
        voice = SpokenVoice(speaks, ["en"])
        author = OutlineAuthor(Path, lambda _path: 1, voice)
        authors = {"outline": author}
        courses = Courses(desk.database, desk.library, desk.blobs, desk.clock, desk.ids, authors)
        desk.runs = CourseRuns(desk.database, desk.library, desk.clock, desk.ids, authors)
        request = CourseRequest(materials=(sample(SAMPLES[0]),), narrated=True)
        made = await courses.create(request, "staff:o")
        await desk.work()
        assert await courses.silent(made) == ()
        await courses.start(made.course_id)
        await desk.work()
        course = await courses.get(made.course_id)
        assert course.status == "succeeded"
        classroom = desk.library.read(str(course.modules[0].classroom_id))
        assert all(scene.actions for scene in classroom.scenes)
        assert (await publish(courses, desk.publisher, made.course_id, HOST)).new

    desk.run(go())


def test_a_course_that_nobody_can_speak_fails_by_name(desk: Desk) -> None:
    """A narrated course in a language without a voice ends with COURSE_VOICE_MISSING."""

    async def go() -> None:
        request = CourseRequest(materials=(sample(SAMPLES[1]),), narrated=True)
        made = await desk.courses.create(request, "staff:o")
        await desk.work()
        await desk.courses.start(made.course_id, without_audio=True)
        await desk.work()
        course = await desk.courses.get(made.course_id)
        assert (course.status, course.error_code) == ("failed", "COURSE_VOICE_MISSING")

    desk.run(go())


def test_the_requirement_is_in_order_and_bounded(desk: Desk) -> None:
    """A requirement says everything in its order, always alike, in at most 48,000 characters."""

    async def go() -> None:
        course = await desk.finished()
        assert course.framework is not None
        digests = [one.digest for one in course.modules[:3] if one.digest]
        made = build_module_requirement(course.framework, 3, digests, "The request")
        assert made == build_module_requirement(course.framework, 3, digests, "The request")
        heads = ["# Course", "# Language", "# Terms", "# Module", "# Objectives", "# Known before",
                 "# Made so far", "# Asked for"]  # fmt: skip
        places = [made.index(head) for head in heads]
        assert all(first < second for first, second in pairwise(places))
        assert all(one.semantic_hash in made for one in digests)
        long = build_module_requirement(course.framework, 3, digests * 5, "x" * 100_000)
        assert len(long) <= MOST
        assert digests[0].semantic_hash in long
        assert hashlib.sha256(
            build_module_requirement(course.framework, 0, [], "A course").encode()
        ).hexdigest() == (course.modules[0].requirement_sha256)

    desk.run(go())


def plain(framework: CourseFramework) -> Any:
    return msgspec.json.decode(msgspec.json.encode(framework))
