"""What a toy plays when something was assigned: with real lessons from files, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from etude.practice.apps import shipped_apps
from etude.practice.assigned import Assigned, CoursewarePin, LessonAddress
from etude.practice.course_lessons import CourseLessons
from etude.practice.course_scenes import lesson_id_of
from etude.practice.lesson_errors import LessonPackError
from etude.practice.lesson_packs import LessonPacks, Pack, PackClip, read_pack
from etude.practice.lessons import Lessons
from etude.practice.records import EncodedPrompt, Prompt, SessionStart, Unfinished
from etude.practice.runtime import practice_factory
from etude.practice.supplies import Supplies
from etude.speech.clip_cache import ClipCache
from etude.speech.clips import EncodedClip
from etude.testing.fake_card import FakeCard
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson
from etude.testing.noted import NotedRecording
from etude.testing.scene_registry import SceneRegistry, scene
from etude.testing.toy import Toy
from etude.testing.virtual_time import run

APP, TASK = "english_learning", "shadowing"
PIN = CoursewarePin(courseware_id="c", version=2, content_hash="sha256:0", scene_id="s")
ALPHA = ["alpha 1", "alpha 2"]
ZETA = ["zeta 1", "zeta 2"]


def assigned(lesson_id: str = "zeta", **more: Any) -> Assigned:
    place = {"app_id": APP, "task_id": TASK} | more.pop("place", {})
    return Assigned(
        assignment_key=1,
        assignment_id=f"as-{lesson_id}",
        lesson=LessonAddress(lesson_id=lesson_id, **place),
        starts_us=0,
        learner_key=7,
        **more,
    )


class Notebook:
    """A recorder in memory."""

    def __init__(self) -> None:
        self.starts: list[SessionStart] = []
        self.left: Unfinished | None = None

    def begin(self, start: SessionStart) -> NotedRecording:
        self.starts.append(start)
        return NotedRecording()

    def resume(self, unfinished: Unfinished) -> NotedRecording:
        self.left = None
        return NotedRecording(unfinished.session_id)

    def unfinished(self, _device_id: str) -> Unfinished | None:
        return self.left


def prompt_of(prompt: Prompt, locale: str) -> EncodedPrompt | None:
    clip = EncodedClip(packets=(b"\x58",), frame_ms=60, sample_rate=24_000, duration_ms=60)
    return EncodedPrompt(prompt=prompt, text=f"<{prompt.value}.{locale}>", clip=clip)


class Shelf:
    """Web's lessons in a folder; None: web is away."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root

    def ask(self, address: LessonAddress) -> Pack:
        pack = read_pack(self.root, address) if self.root else None
        if pack is None:
            raise LessonPackError(lesson=address.lesson_id, reason="connect")
        return pack

    def fetch(self, address: LessonAddress, clip: PackClip, into: BinaryIO) -> None:
        assert self.root is not None
        folder = self.root / address.app_id / address.task_id / "lessons" / address.lesson_id
        into.write((folder / clip.clip).read_bytes())


class Bench:
    """A toy whose installation has the lessons alpha and zeta; `assigned` is what counts now."""

    def __init__(
        self,
        root: Path,
        *,
        files: dict[str, int] | None = None,
        notebook: Notebook | None = None,
        registry: SceneRegistry | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.supplies: Supplies | None = None
        if registry is not None:
            shelf = shelf or Shelf()
            self.supplies = Supplies(
                CourseLessons(root / "courses", registry.ask, registry.download),
                LessonPacks(root / "packs", root, shelf.ask, shelf.fetch),
            )
        self.assigned: Assigned | None = None
        self.notebook = notebook or Notebook()
        self.toy = Toy(None if files is None else FakeCard(files))
        self.lessons = Lessons(root, ClipCache(None), root / "packs")
        make: Any = practice_factory
        factory = make(
            shipped_apps(),
            self.lessons,
            self.notebook,
            prompt_of,
            assignment_of=lambda _: self.assigned,
            supplies=self.supplies,
        )
        self.practice = factory(self.toy)

    async def close(self) -> None:
        self.lessons.close()
        if self.supplies is not None:
            await self.supplies.close()

    async def connect(self) -> None:
        self.toy.connect(self.practice)
        await asyncio.sleep(4)

    async def say(self, said: str, then_s: float = 30.0) -> None:
        self.toy.say(said)
        await asyncio.sleep(then_s)

    @property
    def clips(self) -> list[str]:
        return [what for what in self.toy.played() if not what.startswith("<")]

    @property
    def prompts(self) -> list[str]:
        return [what for what in self.toy.played() if what.startswith("<")]


Play = Callable[[Bench], Coroutine[Any, Any, None]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for lesson_id in ("alpha", "zeta"):
        parts = [Part(name=f"{n:02}.mp3", text=f"{lesson_id} {n}", lasts_ms=600) for n in (1, 2)]
        write_lesson(tmp_path / APP / TASK / "lessons" / lesson_id, parts)
    return tmp_path


def at_bench(
    root: Path,
    play: Play,
    *,
    files: dict[str, int] | None = None,
    registry: SceneRegistry | None = None,
    shelf: Shelf | None = None,
) -> None:
    async def main() -> None:
        bench = Bench(root, files=files, registry=registry, shelf=shelf)
        await bench.connect()
        try:
            await play(bench)
        finally:
            await bench.close()

    run(main)


@pytest.mark.parametrize(
    "said",
    ["start reading", "Start practice!", "开始练习。", "[voice_entry]开始练习",
     "[app_task]english_learning|shadowing", "[app_task]shadowing|zeta", "START_APP_TASK"],
)  # fmt: skip
def test_whatever_starts_the_task_plays_exactly_the_assigned_lesson(root: Path, said: str) -> None:
    """Entry phrase, generic phrase, button, command: zeta, whole, with its assignment."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned(listen_ratio=1.4)
        if said == "START_APP_TASK":
            bench.practice.start_task(APP, TASK, {})
            await asyncio.sleep(30)
        else:
            await bench.say(said)
        (start,) = bench.notebook.starts
        assert bench.clips == ZETA
        assert (start.lesson_id, start.assignment_id) == ("zeta", "as-zeta")
        assert start.listen_ratio == 1.4

    at_bench(root, play)


def test_a_published_scene_is_not_looked_for_among_lessons(root: Path) -> None:
    """What is pinned is its own lesson or none: a lesson of the same name is not played for it."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned(courseware=PIN)
        await bench.say("start reading")
        assert (bench.clips, bench.prompts) == ([], ["<no_lesson.en>"])
        assert bench.notebook.starts == []

    at_bench(root, play)


def test_another_lesson_by_name_is_nobodys_assignment(root: Path) -> None:
    """Who names alpha gets alpha, and the session carries no assignment."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned()
        await bench.say("[app_task]shadowing|alpha")
        (start,) = bench.notebook.starts
        assert (bench.clips, start.assignment_id, start.courseware) == (ALPHA, None, None)

    at_bench(root, play)


def test_a_command_may_name_lesson_and_assignment(root: Path) -> None:
    """What it says is what is recorded; an assignment without a lesson says nothing."""

    async def play(bench: Bench) -> None:
        bench.practice.start_task(APP, TASK, {"lesson_id": "alpha", "assignment_id": "as-9"})
        await asyncio.sleep(30)
        bench.practice.start_task(APP, TASK, {"assignment_id": "as-9"})
        await asyncio.sleep(30)
        assert [one.assignment_id for one in bench.notebook.starts] == ["as-9", None]

    at_bench(root, play)


def test_an_assignment_of_another_task_leaves_the_others_alone(root: Path) -> None:
    """Its own task and the generic phrase start it; other tasks play what they always do."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned(place={"task_id": "elsewhere"})
        await bench.say("start reading")
        assert (bench.clips, bench.notebook.starts[0].assignment_id) == (ALPHA, None)

    at_bench(root, play)


@pytest.mark.parametrize("of", [None, {"app_id": "removed"}, {"task_id": "removed"}])
def test_without_an_assignment_the_generic_phrase_says_so(
    root: Path, of: dict[str, str] | None
) -> None:
    """Nothing assigned, or of an app that is no more: one prompt, no session, still in chat."""

    async def play(bench: Bench) -> None:
        bench.assigned = None if of is None else assigned(place=of)
        await bench.say("start practice")
        assert (bench.clips, bench.prompts) == ([], ["<no_lesson.en>"])
        assert (bench.notebook.starts, bench.practice.busy) == ([], False)

    at_bench(root, play)


def test_an_assigned_lesson_that_is_gone_is_not_replaced_by_another(root: Path) -> None:
    """It was removed since: the toy says that there is none, and plays no other instead."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("removed")
        await bench.say("start reading")
        assert (bench.clips, bench.prompts) == ([], ["<no_lesson.en>"])

    at_bench(root, play)


def test_a_lesson_that_runs_is_not_changed(root: Path) -> None:
    """Assigned anew or withdrawn in the midst: it goes on to its end; the next one is the new."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("zeta")
        await bench.say("start reading", then_s=1.0)
        bench.assigned = assigned("alpha")
        await asyncio.sleep(30)
        assert bench.clips == ZETA
        await bench.say("start practice")
        assert bench.clips == ZETA + ALPHA
        assert [one.assignment_id for one in bench.notebook.starts] == ["as-zeta", "as-alpha"]

    at_bench(root, play)


def test_a_lost_connection_goes_on_with_what_it_began(root: Path) -> None:
    """Resumed within ten minutes it is the old lesson, whatever was assigned since."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("zeta", listen_ratio=1.4)
        await bench.say("start reading", then_s=1.0)
        (start,) = bench.notebook.starts
        bench.notebook.left = Unfinished(
            session_id="session-1", start=start, next_step=1, disconnected_at_s=0.0
        )
        bench.assigned = assigned("alpha")
        other = Bench(root, notebook=bench.notebook)
        other.assigned = bench.assigned
        await other.connect()
        await asyncio.sleep(30)
        assert other.clips == ZETA[1:]
        assert len(bench.notebook.starts) == 1
        other.lessons.close()

    at_bench(root, play)


@pytest.mark.parametrize(("on_card", "backend"), [("zeta", "sd"), ("other", "stream")])
def test_a_card_plays_the_assigned_lesson_if_it_has_it(
    root: Path, on_card: str, backend: str
) -> None:
    """From the card where it is there, streamed where the card has only others."""
    folder = f"/{APP}/{TASK}/lessons"
    files = {f"{folder}/{name}/{n:02}.mp3": 600 for name in ("alpha", on_card) for n in (1, 2)}

    async def play(bench: Bench) -> None:
        bench.assigned = assigned(listen_ratio=1.5)
        await bench.say("start reading")
        (start,) = bench.notebook.starts
        assert (start.lesson_id, start.listen_ratio) == ("zeta", 1.5)
        assert start.backend == backend
        played = [f"{folder}/zeta/01.mp3", f"{folder}/zeta/02.mp3"] if backend == "sd" else ZETA
        assert bench.clips == played

    at_bench(root, play, files=files)


SEA = ["The sea swells.", "It falls."]


@pytest.fixture
def registry(tmp_path_factory: pytest.TempPathFactory) -> SceneRegistry:
    return SceneRegistry(tmp_path_factory.mktemp("registry"))


def of_course(pin: CoursewarePin, **more: Any) -> Assigned:
    return assigned(lesson_id_of(pin), courseware=pin, **more)


@pytest.mark.parametrize("said", ["start reading", "start practice", "START_APP_TASK", "by id"])
@pytest.mark.parametrize("ratio", [None, 1.5])
def test_a_published_scene_is_practised_by_its_own_texts_ratio_and_rubric(
    root: Path, registry: SceneRegistry, said: str, ratio: float | None
) -> None:
    """However it is started; the session says title, pin and rubric; an assignment's ratio wins."""
    pin = registry.publish(2, scene(*SEA, ratio=1.3, title="Tides"))

    async def play(bench: Bench) -> None:
        bench.assigned = of_course(pin, listen_ratio=ratio)
        arguments = {"lesson_id": lesson_id_of(pin)} if said == "by id" else {}
        if said.startswith("start"):
            await bench.say(said)
        else:
            bench.practice.start_task(APP, TASK, arguments)
            await asyncio.sleep(30)
        (start,) = bench.notebook.starts
        assert bench.clips == SEA
        assert (start.lesson_id, start.assignment_id) == (
            lesson_id_of(pin),
            f"as-{lesson_id_of(pin)}",
        )
        assert (start.lesson_title, start.listen_ratio) == ("Tides", ratio or 1.3)
        assert start.rubric is not None
        assert (start.rubric["id"], len(start.rubric["digest"])) == ("follow-read-en", 64)
        assert start.courseware == {
            "courseware_id": pin.courseware_id,
            "version": 2,
            "content_hash": pin.content_hash,
            "scene_id": "p1",
            "title": "Why tides come twice",
            "scene_title": "Tides",
        }

    at_bench(root, play, registry=registry)


def test_a_newer_version_changes_no_assignment(root: Path, registry: SceneRegistry) -> None:
    """The older assignment plays the older sentences, the newer one the newer."""
    first = registry.publish(1, scene(*SEA))
    second = registry.publish(2, scene("The sea swells much."))

    async def play(bench: Bench) -> None:
        bench.assigned = of_course(first)
        await bench.say("start practice")
        bench.assigned = of_course(second)
        await bench.say("start practice")
        bench.assigned = of_course(first)
        await bench.say("start practice")
        assert bench.clips == [*SEA, "The sea swells much.", *SEA]

    at_bench(root, play, registry=registry)


@pytest.mark.parametrize("what", ["bundle", "clip", "unknown"])
def test_a_damaged_scene_is_no_lesson_and_never_another_one(
    root: Path, registry: SceneRegistry, what: str
) -> None:
    """A bad byte in the bundle or on the disk, an unknown version: the toy says there is none."""
    pin = registry.publish(1, scene(*SEA))

    async def play(bench: Bench) -> None:
        bench.assigned = of_course(pin)
        if what == "clip":
            await bench.say("start practice")
            (clip,) = (root / "courses").rglob("01.wav")
            clip.write_bytes(clip.read_bytes()[:-1])
        if what != "unknown":
            registry.damage(1, len(registry.bundles[1]) // 2)
        else:
            bench.assigned = of_course(CoursewarePin(**{**_fields(pin), "version": 7}))
        played = len(bench.clips)
        await bench.say("start practice")
        assert len(bench.clips) == played
        assert bench.prompts[-1] == "<no_lesson.en>"
        assert bench.practice.busy is False

    at_bench(root, play, registry=registry)


def _fields(pin: CoursewarePin) -> dict[str, Any]:
    return {name: getattr(pin, name) for name in CoursewarePin.__struct_fields__}


def test_a_lost_connection_goes_on_with_the_version_it_began(
    root: Path, registry: SceneRegistry
) -> None:
    """Resumed from what its session says, whatever is assigned or published since."""
    first = registry.publish(1, scene(*SEA))
    second = registry.publish(2, scene("Other.", "Words."))

    async def play(bench: Bench) -> None:
        bench.assigned = of_course(first)
        await bench.say("start practice", then_s=1.0)
        (start,) = bench.notebook.starts
        bench.notebook.left = Unfinished(
            session_id="session-1", start=start, next_step=1, disconnected_at_s=0.0
        )
        other = Bench(root, notebook=bench.notebook, registry=registry)
        other.assigned = of_course(second)
        await other.connect()
        await asyncio.sleep(30)
        assert other.clips == SEA[1:]
        await other.close()

    at_bench(root, play, registry=registry)


def test_a_card_does_not_play_what_nobody_has_checked(root: Path, registry: SceneRegistry) -> None:
    """A folder of the same name on a card is not the published scene: it is streamed."""
    pin = registry.publish(1, scene(*SEA))
    files = {f"/{APP}/{TASK}/lessons/{lesson_id_of(pin)}/01.mp3": 600}

    async def play(bench: Bench) -> None:
        bench.assigned = of_course(pin)
        await bench.say("start practice")
        (start,) = bench.notebook.starts
        assert (bench.clips, start.backend) == (SEA, "stream")

    at_bench(root, play, files=files, registry=registry)


@pytest.fixture
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Web has the lesson omega, which this gateway has not."""
    root = tmp_path_factory.mktemp("shelf")
    parts = [Part(name=f"{n:02}.mp3", text=f"omega {n}", lasts_ms=600) for n in (1, 2)]
    write_lesson(root / APP / TASK / "lessons" / "omega", parts)
    return Shelf(root)


OMEGA = ["omega 1", "omega 2"]


def test_an_assigned_lesson_that_only_web_has_is_fetched_whole(
    root: Path, registry: SceneRegistry, shelf: Shelf
) -> None:
    """Sounds and texts; afterwards it is played while web is away."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("omega")
        await bench.say("start practice")
        shelf.root = None
        await bench.say("start practice")
        assert bench.clips == OMEGA * 2
        assert [one.lesson_id for one in bench.notebook.starts] == ["omega"] * 2

    at_bench(root, play, registry=registry, shelf=shelf)


def test_what_web_has_not_either_is_no_lesson(
    root: Path, registry: SceneRegistry, shelf: Shelf
) -> None:
    """Assigned, and nowhere: the toy says so, and plays no other one."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("sigma")
        await bench.say("start reading")
        assert (bench.clips, bench.prompts) == ([], ["<no_lesson.en>"])

    at_bench(root, play, registry=registry, shelf=shelf)


def test_a_damaged_pack_is_not_played(root: Path, registry: SceneRegistry, shelf: Shelf) -> None:
    """A byte other than fetched while web is away: no lesson; back again, it is whole again."""
    web = shelf.root

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("omega")
        await bench.say("start practice")
        (clip,) = (root / "packs").rglob("02.mp3")
        content = bytearray(clip.read_bytes())
        content[100] ^= 1
        clip.write_bytes(content)
        shelf.root = None
        await bench.say("start practice")
        assert (bench.clips, bench.prompts[-1]) == (OMEGA, "<no_lesson.en>")
        shelf.root = web
        await bench.say("start practice")
        assert bench.clips == OMEGA * 2

    at_bench(root, play, registry=registry, shelf=shelf)


def test_what_is_installed_here_is_not_asked_for(
    root: Path, registry: SceneRegistry, shelf: Shelf
) -> None:
    """A lesson of the gateway's own folder needs no web."""

    async def play(bench: Bench) -> None:
        bench.assigned = assigned("zeta")
        await bench.say("start practice")
        assert bench.clips == ZETA
        assert not (root / "packs").exists()

    at_bench(root, play, registry=registry, shelf=shelf)
