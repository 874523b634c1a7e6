"""Single classrooms from request to document: kills, cancellations, quotas; on both databases."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from etude.authoring.authors import LessonOrder, OutlineAuthor
from etude.authoring.classrooms.errors import (
    ClassroomJobsAtOnceError,
    ClassroomJobStateError,
    ClassroomJobUnknownError,
    ClassroomsADayError,
    LessonOutlineChangedError,
)
from etude.authoring.classrooms.jobs import ClassroomJobs, Quota
from etude.authoring.classrooms.learner_data import classrooms_data
from etude.authoring.classrooms.making import (
    TIDY,
    ClassroomMaking,
    ClassroomRemoval,
    ClassroomTidying,
)
from etude.authoring.classrooms.records import (
    HOST,
    MAKE,
    REMOVE,
    ClassroomJob,
    LessonOutline,
    LessonRequest,
    Owner,
    Step,
    Tell,
    progress_of,
)
from etude.authoring.classrooms.shelf import Shelf
from etude.authoring.classrooms.tables import classroom_job, classroom_record
from etude.authoring.errors import (
    LessonMaterialTooLittleError,
    LessonOutlineInvalidError,
    LessonStepsMissingError,
)
from etude.authoring.material import Material
from etude.authoring.samples import sample
from etude.classroom.errors import ClassroomUnknownError
from etude.classroom.library import ClassroomLibrary, Draft
from etude.classroom.model import Classroom, InteractiveContent
from etude.clock import RandomIds
from etude.files import armed
from etude.jobs import JobState, find
from etude.jobs.claims import Claims
from etude.jobs.tables import job as job_rows
from etude.people.erasure import erase_learner
from etude.people.errors import LearnerErasedError
from etude.people.learner_data import LearnerDataRegistry
from etude.people.learners import add_learner
from etude.people.own_data import people_data
from etude.people.records import HOST as HOST_ACTOR
from etude.store import Blobs, Database
from etude.testing.clocks import ManualClock

TEXT = (
    "cat = a small animal that says meow\ndog = an animal that barks\nhen = a bird that lays eggs"
)
STAFF = Owner(kind="staff", key=7)


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


class CountingAuthor(OutlineAuthor):
    """Counts what it makes; fails, hangs or leaves the activity out where it is told to."""

    def __init__(self) -> None:
        super().__init__(Path, lambda path: len(path.name))
        self.outlined = self.made = 0
        self.fails = self.hangs = self.plain = False
        self.hanging = asyncio.Event()
        self.told: list[tuple[Step, int, int]] = []

    async def lesson_outline(self, order: LessonOrder, tell: Tell) -> LessonOutline:
        self.outlined += 1
        return await super().lesson_outline(order, tell)

    async def lesson(
        self, order: LessonOrder, outline: LessonOutline, draft: Draft, tell: Tell
    ) -> Classroom:
        def heard(step: Step, made: int, of: int) -> None:
            self.told.append((step, made, of))
            tell(step, made, of)

        if self.fails:
            raise RuntimeError
        draft.put("media/early.png", [b"\x89PNG\r\n\x1a\n"])
        if self.hangs:
            heard(Step.SCENES, 3, 6)
            self.hanging.set()
            await asyncio.sleep(3600)
        classroom = await super().lesson(order, outline, draft, heard)
        self.made += 1
        if self.plain:
            scenes = tuple(
                one for one in classroom.scenes if not isinstance(one.content, InteractiveContent)
            )
            return msgspec.structs.replace(classroom, scenes=scenes)
        return classroom


class Desk:
    """Somebody who has classrooms made, and a worker that works when the test says so."""

    def __init__(
        self, database: Database, run: Callable[..., Any], folder: Path, quota: Quota | None = None
    ) -> None:
        self.database, self.run, self.folder = database, run, folder / "classrooms"
        self.clock, self.ids = ManualClock(), RandomIds()
        self.library = ClassroomLibrary(self.folder)
        self.blobs = Blobs(folder / "blobs", self.clock)
        self.author = CountingAuthor()
        authors = {"outline": self.author}
        allowed = quota or Quota(at_once=2, a_day=100)
        self.jobs = ClassroomJobs(database, self.blobs, self.clock, self.ids, authors, allowed)
        self.shelf = Shelf(database, self.folder, self.clock, self.ids, allowed)
        self.handlers = {
            MAKE: ClassroomMaking(
                database, self.library, self.blobs, self.clock, self.ids, authors, look_every_s=0.02
            ),
            REMOVE: ClassroomRemoval(database, self.library),
        }
        self.tidying = ClassroomTidying(database, self.library, self.jobs, self.clock)
        self.claims = self._claims()

    def _claims(self) -> Claims:
        return Claims(
            self.database,
            self.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={MAKE: 10, REMOVE: 10},
            periods_s={},
        )

    async def work(self) -> int:
        jobs = await self.claims.claim(10)
        for job in jobs:
            await self.handlers[job.kind](job)
            await self.claims.finish_rest(job)
        return len(jobs)

    async def tidy(self) -> None:
        claims = Claims(
            self.database,
            self.clock,
            executor=RandomIds().new(),
            lease_s=30,
            max_attempts={TIDY: 10},
            periods_s={TIDY: 3600},
        )
        await claims.add_periodic()
        self.clock.advance(3600)
        for job in await claims.claim(10):
            await self.tidying(job)
            await claims.finish_rest(job)

    def killed(self) -> None:
        """A new worker, after the lease of the dead one."""
        self.clock.advance(60)
        self.claims = self._claims()

    async def to_the_end(self) -> None:
        while await self.work():
            pass

    async def waiting(self, owner: Owner = STAFF) -> ClassroomJob:
        """A job whose outline waits."""
        job = await self.jobs.create(lesson(), owner)
        await self.work()
        return await self.jobs.get(owner, job.job_id)

    def left(self) -> list[str]:
        """What is in the folder of classrooms."""
        return sorted(one.name for one in self.folder.iterdir()) if self.folder.exists() else []


def lesson(**more: Any) -> LessonRequest:
    """A request with material, whose outline is to be confirmed."""
    part = sample("water-cycle.md").text.split("\n## ")[1]
    return LessonRequest(
        requirement="Water goes up", materials=(Material(name="a.md", text=f"## {part}"),), **more
    )


@pytest.fixture
def desk(database: Database, run: Callable[..., Any], tmp_path: Path) -> Desk:
    return Desk(database, run, tmp_path)


def test_a_text_becomes_a_classroom(desk: Desk) -> None:
    """Text alone is made without asking: one classroom, its owner's, listed, with an activity."""

    async def go() -> None:
        job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
        assert (job.status, job.step, job.progress) == ("queued", "queued", 0)
        await desk.to_the_end()
        job = await desk.jobs.get(STAFF, job.job_id)
        assert (job.status, job.step, job.progress) == ("succeeded", "completed", 100)
        stored = await desk.shelf.read(STAFF, job.classroom_id)
        assert job.outline is not None
        assert job.scenes_made == len(stored.classroom.scenes) == len(job.outline.scenes)
        listed = await desk.shelf.listed(STAFF, cursor=None, limit=10)
        assert [(one.classroom_id, one.origin) for one in listed.items] == [
            (job.classroom_id, "generated")
        ]
        assert desk.author.told[0][0] is Step.SCENES
        for step, made, of in desk.author.told:
            assert 30 <= progress_of(step, made, of) <= 94

    desk.run(go())


def test_material_waits_for_a_person(desk: Desk) -> None:
    """With material the outline waits, is edited by its revision and confirmed; then it is made."""

    async def go() -> None:
        job = await desk.waiting()
        assert (job.status, job.step, job.progress) == (
            "waiting", "awaiting_outline_confirmation", 30,
        )  # fmt: skip
        assert desk.library.ids() == ()
        assert job.outline is not None
        outline = job.outline
        kept = [one for one in outline.scenes if one.type != "pbl"]
        kept[1], kept[2] = kept[2], kept[1]
        kept[3] = msgspec.structs.replace(kept[3], title="Water & air")
        edited = msgspec.structs.replace(outline, title="Where puddles go", scenes=tuple(kept))
        with pytest.raises(LessonOutlineChangedError):
            await desk.jobs.edit_outline(STAFF, job.job_id, 7, edited)
        job = await desk.jobs.edit_outline(STAFF, job.job_id, 1, edited)
        assert job.outline_revision == 2
        with pytest.raises(LessonOutlineChangedError):
            await desk.jobs.confirm(STAFF, job.job_id, 1)
        await desk.jobs.confirm(STAFF, job.job_id, 2)
        await desk.to_the_end()
        made = (await desk.shelf.read(STAFF, job.classroom_id)).classroom
        assert made.stage.name == "Where puddles go"
        assert [one.type for one in made.scenes] == [one.type for one in kept]
        assert made.scenes[3].title == "Water & air"
        assert b"Water &amp;amp; air" not in msgspec.json.encode(made)
        assert b"Water &amp; air" in msgspec.json.encode(made.scenes[3])
        assert made.scenes[0].title == "Where puddles go"
        with pytest.raises(ClassroomJobStateError):
            await desk.jobs.confirm(STAFF, job.job_id)

    desk.run(go())


def test_an_outline_keeps_to_the_material(desk: Desk) -> None:
    """What the material does not say cannot be put into an outline; each mistake has its path."""

    async def go() -> None:
        job = await desk.waiting()
        assert job.outline is not None
        scenes = list(job.outline.scenes)
        scenes[0] = msgspec.structs.replace(scenes[0], id="new")
        scenes[1] = msgspec.structs.replace(scenes[1], key_points=("Volcanoes",))
        scenes = [one for one in scenes if one.type != "interactive"]
        bad = msgspec.structs.replace(job.outline, scenes=tuple(scenes))
        with pytest.raises(LessonOutlineInvalidError) as refused:
            await desk.jobs.edit_outline(STAFF, job.job_id, 1, bad)
        found = [(one.params["path"], one.params["rule"]) for one in refused.value.parts]
        assert found == [
            ("scenes[0].id", "no_material"),
            ("scenes[1].keyPoints", "from_material"),
            ("scenes", "no_activity"),
        ]

    desk.run(go())


def test_modes_ask_for_activities_and_steps(desk: Desk) -> None:
    """Interactive mode makes several kinds of activity; a task needs steps in the material."""

    async def go() -> None:
        job = await desk.jobs.create(lesson(interactive_mode=True), STAFF)
        await desk.work()
        job = await desk.jobs.get(STAFF, job.job_id)
        assert job.outline is not None
        assert sum(one.type == "interactive" for one in job.outline.scenes) == 4
        with pytest.raises(LessonStepsMissingError):
            await desk.jobs.create(lesson(task_engine_mode=True), STAFF)
        steps = "## Tea\n\n1. Boil the water.\n2. Warm the pot.\n3. Add the tea.\n4. Pour.\n"
        wanted = LessonRequest(requirement=steps, task_engine_mode=True)
        job = await desk.jobs.create(wanted, STAFF)
        await desk.work()
        await desk.jobs.confirm(STAFF, job.job_id)
        await desk.work()
        made = (await desk.shelf.read(STAFF, job.classroom_id)).classroom
        kinds = [
            one.content.widget_type
            for one in made.scenes
            if isinstance(one.content, InteractiveContent)
        ]
        assert (kinds, made.stage.task_engine_mode) == (["procedural-skill"], True)

    desk.run(go())


@pytest.mark.parametrize(
    "point",
    [
        "authoring.classroom.asked", "authoring.classroom.outlined",
        "authoring.classroom.outline_noted", "authoring.classroom.confirmed",
        "authoring.classroom.made", "classroom.file.renamed", "classroom.draft.synced",
        "classroom.draft.placed", "authoring.classroom.placed", "authoring.classroom.noted",
        "store.transaction.before_commit", "store.transaction.committed",
    ],
)  # fmt: skip
def test_a_kill_anywhere_goes_on(  # noqa: C901 - the steps of one story
    desk: Desk, point: str
) -> None:
    """After kills at any point there is one classroom, and nothing beside it."""

    async def go() -> None:  # noqa: C901 - as above
        crashes = 0

        def crash(reached: str) -> None:
            nonlocal crashes
            if reached == point and crashes < 2:
                crashes += 1
                raise CrashError

        async def step(action: Callable[[], Any]) -> Any:
            for _ in range(3):
                try:
                    return await action()
                except CrashError:
                    desk.killed()
            return await action()

        async def ask() -> str:
            listed = await desk.jobs.listed(STAFF, cursor=None, limit=10)
            if listed.items:
                return listed.items[0].job_id
            return (await desk.jobs.create(lesson(), STAFF)).job_id

        async def confirm() -> None:
            if (await desk.jobs.get(STAFF, job_id)).status == "waiting":
                await desk.jobs.confirm(STAFF, job_id)

        with armed(crash):
            job_id = await step(ask)
            await step(desk.to_the_end)
            await step(confirm)
            await step(desk.to_the_end)
        desk.killed()
        await desk.to_the_end()
        job = await desk.jobs.get(STAFF, job_id)
        assert job.status == "succeeded"
        assert crashes
        assert desk.library.ids() == (job.classroom_id,)
        if point in {"authoring.classroom.placed", "authoring.classroom.noted"}:
            assert desk.author.made == 1
        assert desk.author.outlined <= (3 if point != "authoring.classroom.outline_noted" else 1)
        desk.clock.advance(2 * 86_400)
        await desk.tidy()
        assert desk.left() == [job.classroom_id, f"{job.classroom_id}.json"]

    desk.run(go())


def test_cancel_leaves_nothing(desk: Desk) -> None:
    """A job that would take an hour ends at once when it is cancelled; nothing is on the disk."""

    async def go() -> None:
        desk.author.hangs = True
        job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
        working = asyncio.create_task(desk.work())
        await asyncio.wait_for(desk.author.hanging.wait(), 60)
        assert desk.left()
        found = await desk.jobs.get(STAFF, job.job_id)
        for _ in range(500):
            if found.progress == 60:
                break
            await asyncio.sleep(0.02)
            found = await desk.jobs.get(STAFF, job.job_id)
        assert (found.step, found.scenes_made) == ("generating_scenes", 3)
        cancelled = await desk.jobs.cancel(STAFF, job.job_id)
        assert (cancelled.status, cancelled.step) == ("cancelled", "cancelled")
        await asyncio.wait_for(working, 60)
        assert desk.left() == []
        with pytest.raises(ClassroomJobStateError):
            await desk.jobs.cancel(STAFF, job.job_id)
        with pytest.raises(ClassroomUnknownError):
            await desk.shelf.read(STAFF, job.classroom_id)

    desk.run(go())


def test_cancel_and_kill_together_leave_nothing(desk: Desk) -> None:
    """A classroom that a dying worker placed after the cancellation is gone a minute later."""

    async def go() -> None:
        job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)

        def crash(reached: str) -> None:
            if reached == "authoring.classroom.placed":
                raise CrashError

        with armed(crash), pytest.raises(CrashError):
            await desk.work()
        await desk.jobs.cancel(STAFF, job.job_id)
        assert desk.library.ids() == (job.classroom_id,)
        with pytest.raises(ClassroomUnknownError):
            await desk.shelf.read(STAFF, job.classroom_id)
        desk.killed()
        await desk.to_the_end()
        assert desk.left() == []

    desk.run(go())


@pytest.mark.parametrize(
    ("fault", "code"), [("fails", "AUTHOR_FAILED"), ("plain", "LESSON_WITHOUT_ACTIVITY")]
)
def test_a_failure_leaves_nothing(desk: Desk, fault: str, code: str) -> None:
    """A job that fails says why and keeps nothing; its slot is free again."""

    async def go() -> None:
        setattr(desk.author, fault, True)
        for _ in range(3):
            job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
            await desk.to_the_end()
            job = await desk.jobs.get(STAFF, job.job_id)
            assert (job.status, job.step, job.error_code) == ("failed", "failed", code)
        assert desk.left() == []

    desk.run(go())


def test_text_that_gives_no_lesson_is_refused_at_once(desk: Desk) -> None:
    """What the embedded author cannot make a lesson of is said before anything is stored."""

    async def go() -> None:
        with pytest.raises(LessonMaterialTooLittleError):
            await desk.jobs.create(LessonRequest(requirement="Teach me about volcanoes."), STAFF)
        assert (await desk.jobs.listed(HOST, cursor=None, limit=10)).items == ()

    desk.run(go())


def test_so_many_at_once_and_a_day(
    database: Database, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Over a quota 429 says when to come again; what waits for its reader takes no slot."""
    desk = Desk(database, run, tmp_path, Quota(at_once=2, a_day=4))

    async def go() -> None:
        wanted = LessonRequest(requirement=TEXT)
        both = await asyncio.gather(
            *(desk.jobs.create(wanted, STAFF) for _ in range(4)), return_exceptions=True
        )
        assert sum(isinstance(one, ClassroomJob) for one in both) == 2
        refused = [one for one in both if isinstance(one, ClassroomJobsAtOnceError)]
        assert [one.params["retry_after_s"] for one in refused] == [30, 30]
        other = Owner(kind="staff", key=8)
        await desk.jobs.create(wanted, other)
        await desk.to_the_end()
        waiting = await desk.waiting()
        assert waiting.status == "waiting"
        await desk.jobs.create(wanted, STAFF)
        with pytest.raises(ClassroomsADayError) as late:
            await desk.jobs.create(wanted, STAFF)
        wait = late.value.params["retry_after_s"]
        assert isinstance(wait, int)
        assert 0 < wait <= 86_400
        desk.clock.advance(wait + 1)
        await desk.jobs.create(wanted, STAFF)
        with pytest.raises(ClassroomJobsAtOnceError):
            await desk.jobs.confirm(STAFF, waiting.job_id)
        await desk.to_the_end()
        await desk.jobs.confirm(STAFF, waiting.job_id)

    desk.run(go())


def test_what_is_somebody_elses_is_not_there(desk: Desk) -> None:
    """An owner sees own jobs and classrooms only; whoever sees all sees them all."""

    async def go() -> None:
        job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
        await desk.to_the_end()
        other = Owner(kind="service", key=7)
        for act in (desk.jobs.get, desk.jobs.cancel, desk.jobs.confirm):
            with pytest.raises(ClassroomJobUnknownError):
                await act(other, job.job_id)
        with pytest.raises(ClassroomUnknownError):
            await desk.shelf.read(other, job.classroom_id)
        with pytest.raises(ClassroomUnknownError):
            await desk.shelf.remove(other, job.classroom_id)
        assert (await desk.jobs.listed(other, cursor=None, limit=10)).items == ()
        assert (await desk.shelf.listed(other, cursor=None, limit=10)).items == ()
        everybodys = await desk.shelf.listed(HOST, cursor=None, limit=10)
        assert [one.classroom_id for one in everybodys.items] == [job.classroom_id]

    desk.run(go())


def test_a_lost_worker_is_said(desk: Desk) -> None:
    """A job whose worker died too often is failed when somebody looks, not running for ever."""

    async def go() -> None:
        job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
        async with desk.database.transaction() as work:
            await work.connection.execute(job_rows.update().values(state=JobState.DEAD))
        found = await desk.jobs.get(STAFF, job.job_id)
        assert (found.status, found.error_code) == ("failed", "CLASSROOM_WORKER_LOST")

    desk.run(go())


def test_forgotten_outlines_and_imports_are_tidied(desk: Desk) -> None:
    """An outline that waits for a week is cancelled; a classroom nobody told of gets listed."""

    async def go() -> None:
        waiting = await desk.waiting()
        document = await _document(desk)

        def crash(reached: str) -> None:
            if reached == "authoring.classroom.kept":
                raise CrashError

        with armed(crash), pytest.raises(CrashError):
            async with desk.shelf.upload() as upload:
                await desk.shelf.bring_document(STAFF, upload, document)
        assert (await desk.shelf.listed(STAFF, cursor=None, limit=10)).items[1:] == ()
        await desk.tidy()
        assert len((await desk.shelf.listed(STAFF, cursor=None, limit=10)).items) == 2
        desk.clock.advance(8 * 86_400)
        await desk.tidy()
        assert (await desk.jobs.get(STAFF, waiting.job_id)).status == "cancelled"
        desk.clock.advance(31 * 86_400)
        await desk.tidy()
        with pytest.raises(ClassroomJobUnknownError):
            await desk.jobs.get(STAFF, waiting.job_id)

    desk.run(go())


def test_an_erased_learners_classrooms_go(desk: Desk) -> None:
    """Erasing a learner ends what is made for them, and takes their classrooms and requests."""

    async def go() -> None:
        registry = LearnerDataRegistry()
        registry.register(people_data(desk.clock))
        registry.register(classrooms_data(desk.clock, desk.blobs, desk.folder))
        async with desk.database.transaction() as work:
            kid = await add_learner(
                work.connection,
                learner_id="kid-1",
                display_name="Kim",
                locale="en",
                now=desk.clock.now(),
            )
        owner = Owner(kind="learner", key=kid.learner_key)
        done = await desk.jobs.create(LessonRequest(requirement=TEXT), owner)
        await desk.to_the_end()
        running = await desk.jobs.create(LessonRequest(requirement=TEXT), owner)
        mine = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
        files = {
            file.path: b"".join([chunk async for chunk in file.chunks])
            async for file in registry.export_learner(desk.database, kid.learner_key)
        }
        assert b"small animal" in files["classrooms.jsonl"]
        assert f"classrooms/{done.classroom_id}.json" in files
        async with desk.database.transaction() as work:
            await erase_learner(work, registry, "kid-1", actor=HOST_ACTOR, now=desk.clock.now())
        with pytest.raises(ClassroomUnknownError):
            await desk.shelf.read(HOST, done.classroom_id)
        desk.clock.advance(10)
        desk.handlers |= {"people.scrub": _nothing}
        desk.claims = desk._claims()
        await desk.to_the_end()
        assert desk.library.ids() == (mine.classroom_id,)
        async with desk.database.read() as connection:
            keys = list((await connection.execute(select(classroom_job.c.job_id))).scalars())
            whose = list((await connection.execute(select(classroom_record.c.learner_key))).all())
            assert await find(connection, MAKE, running.job_id) is not None
        assert keys == [mine.job_id]
        assert [row.learner_key for row in whose] == [None, None, None]
        with pytest.raises(LearnerErasedError):
            await desk.jobs.create(LessonRequest(requirement=TEXT), owner)

    desk.run(go())


def test_removal(desk: Desk) -> None:
    """A removed classroom is gone with its job; a kill in the middle leaves nothing to be seen."""

    async def go() -> None:
        job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
        with pytest.raises(ClassroomUnknownError):  # it is not there yet: its job is cancelled
            await desk.shelf.remove(STAFF, job.classroom_id)
        await desk.to_the_end()

        def crash(reached: str) -> None:
            if reached == "authoring.classroom.removed":
                raise CrashError

        with armed(crash), pytest.raises(CrashError):
            await desk.shelf.remove(STAFF, job.classroom_id)
        with pytest.raises(ClassroomUnknownError):
            await desk.shelf.read(STAFF, job.classroom_id)
        assert (await desk.shelf.listed(HOST, cursor=None, limit=10)).items == ()
        await desk.tidy()
        assert desk.left() == []

    desk.run(go())


async def _nothing(_job: object) -> None:
    return None


async def _document(desk: Desk) -> bytes:
    job = await desk.jobs.create(LessonRequest(requirement=TEXT), STAFF)
    await desk.to_the_end()
    document, _ = await desk.shelf.take_document(STAFF, job.classroom_id)
    return document


def test_progress_keeps_to_its_step() -> None:
    """Progress never passes its step's span, whatever an author says."""
    assert [progress_of(Step.SCENES, at, 6) for at in (0, 3, 6, 9)] == [30, 60, 90, 90]
    assert progress_of(Step.OUTLINES, 1, 2) == 22
