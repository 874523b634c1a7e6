"""`etude demo`: the whole loop on real input, with a crash and a lost network on the way.

Everything is real but the time: processes, files, sockets, kills. The session is the protocol's own
three minutes of violin practice; it takes no time, because its clock is set by the sample. Then a
course is made of a syllabus, and a toy practises it. With `--real-time` that takes its time, and
with `--speech` it is spoken, heard and measured; what is done is the same.

Exit codes: 0 done, 1 the folder holds something else, 4 an engine is not installed or the folder
cannot be used, 70 a promise does not hold, 130 interrupted: nothing of it runs any more.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from etude.cli import demo_course, demo_practice, demo_report, logs, terminal
from etude.cli.demo_course import Assigned, Coursed
from etude.cli.demo_practice import PRACTISING, Practised
from etude.cli.demo_report import Reported
from etude.cli.demo_speech import Way, course_sounds, embedded_voice, tell_measured
from etude.cli.errors import DemoBrokenError, DemoFolderTakenError
from etude.cli.init import Made, Wish, set_up
from etude.cli.installation import unusable
from etude.clock import SystemClock
from etude.courseware.publish_token import LEAST_TOKEN_BYTES, TOKEN_VARIABLE
from etude.edge.outbox import Outbox
from etude.edge.reader import JournalFolder, journal_folders
from etude.edge.upload_state import UploadState, UploadStatus
from etude.events.canonical import same_content
from etude.events.ndjson import decode_line
from etude.files import Files, replace_file
from etude.i18n import text
from etude.net import HttpClient
from etude.people.holders import hold_device
from etude.people.learners import add_learner
from etude.people.scopes import Scope
from etude.people.tokens import TokenRequest, create_token
from etude.rubric.recap import Recap, recap
from etude.settings import PREFIX, SQLITE_FILE, Settings, load
from etude.speech.synthesise import Synthesiser
from etude.store import Database
from etude.testing.relay import Relay
from etude.testing.replay import sample_events
from etude.testing.server import ServerProcess

MARK: Final = ".etude-demo"  # in a folder that this command made and may empty
CRASH_AT_EVENT: Final = 8
LEARNER: Final = "mia"
DEVICE: Final = "violin-1"
PRACTICE: Final = timedelta(minutes=3)
MOST_ROUNDS: Final = 5
KILLED: Final = -9


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, as `summary.json` has it."""

    sessions: int
    events: int
    duplicates_skipped: int
    recap: dict[str, Any]
    course: Coursed | msgspec.UnsetType = msgspec.UNSET
    practice: Practised | msgspec.UnsetType = msgspec.UNSET
    report: Reported | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Who may do what: the device uploads, the learner makes a card, staff reads everything."""

    device: str
    learner: str
    staff: str


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where the demo goes on once its server runs, and how.

    `since`: when the learner began, some minutes ago.
    """

    folder: Path
    settings: Settings
    url: str
    tokens: Tokens
    since: datetime
    way: Way


@dataclass(frozen=True, kw_only=True)
class Played:
    """A session, for its card: what it was (of the catalogue), its report, how long it was."""

    name: str
    report: dict[str, Any]
    minutes: float


def demo(
    *,
    folder: Annotated[Path, typer.Option(help="Folder of what the demo makes.")] = Path("demo"),
    speech: Annotated[
        bool, typer.Option("--speech", help="Speak, hear and measure: needs etude[speech].")
    ] = False,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Let the toys' lessons take their time.")
    ] = False,
    as_json: terminal.JsonOption = False,
) -> None:
    """Practise, crash, lose the network, upload; a syllabus becomes a course that a toy plays."""
    began_s = time.monotonic()
    folder = folder.absolute()
    with _interruptible(), _without_settings():
        if real_time:
            _tell("takes")
        way = Way(voice=_voice() if speech else None, real_time=real_time)
        summary = _play(folder, way)
    encoded = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    replace_file(Files(), folder / "summary.json", encoded + b"\n", mode=0o644)
    seconds = round(time.monotonic() - began_s)
    _tell("done", summary=folder / "summary.json", seconds=seconds)
    if as_json:
        terminal.print_json(summary)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Take SIGTERM and a terminal that is closed as Ctrl-C, so that all is stopped in order."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in ends}
    try:
        yield
    except KeyboardInterrupt:
        _tell("interrupted")
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _without_settings() -> Iterator[None]:
    """Keep out what a real installation is told: the demo's gateway runs in this process."""
    kept = {name: os.environ.pop(name) for name in tuple(os.environ) if name.startswith(PREFIX)}
    try:
        yield
    finally:
        os.environ.update(kept)


def _voice() -> Synthesiser:
    """Load the engines, and tell who speaks, as its licence asks."""
    _tell("loading")
    voice = embedded_voice()
    card = voice.card
    _tell("speaking", engine=card.engine, model=card.model, licence=card.licence)
    if card.notice:
        terminal.print_note(f"     {card.notice}")
    return voice


def _play(folder: Path, way: Way) -> Summary:
    """Do all of it; the server is stopped when this returns or raises."""
    _empty(folder)
    data, journals = folder / "server", folder / "device"
    settings = load(data=data, database_url=f"sqlite:///{data / SQLITE_FILE}")
    since = SystemClock().now() - PRACTICE
    tokens = asyncio.run(_installation(settings, since))
    _tell("installed", folder=folder)
    _practise(journals, since)
    (journal,) = journal_folders(journals)
    shown = recap(journal.events(), locale=terminal.locale())
    _tell_recap(shown)
    with _serving(data, way) as server:
        _tell("serving", url=server.url)
        state = _upload(journals, server.port, tokens.device)
        summary = _read_back(server.url, tokens.device, journal, shown, state)
        site = Site(
            folder=folder,
            settings=settings,
            url=server.url,
            tokens=tokens,
            since=since,
            way=way,
        )
        return _teach(site, summary, state.session_id)


@contextlib.contextmanager
def _serving(data: Path, way: Way) -> Iterator[ServerProcess]:
    """Run a server; when the block is left, however that is, all its processes have ended."""
    server = ServerProcess(data, command="serve", environment=_environment(way))
    server.start(wait=False)
    try:
        server.wait_for("web.listening")
        yield server
    finally:
        server.stop()  # in order: if it were killed, its children would end a little later


def _teach(site: Site, summary: Summary, violin_id: str) -> Summary:
    """Go from a syllabus to the toys, and to the reports of all that was practised."""
    course, assigned = _course(site)
    practised, lesson = _practise_on_toys(site, assigned)
    violin = _examine_violin(site, violin_id)
    report = _hand_on(site, lesson if site.way.speaks else violin)
    return msgspec.structs.replace(summary, course=course, practice=practised, report=report)


def _empty(folder: Path) -> None:
    """Make the folder, or empty the one that an earlier demo made; nobody else's.

    Raises:
        DemoFolderTakenError: something else is in there.
        FolderUnusableError: it is no folder, or cannot be made or written.
    """
    try:
        _clear(folder)
    except OSError as error:
        raise unusable(folder, error) from error


def _clear(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise DemoFolderTakenError(folder=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    for part in ("server", "device", demo_practice.FOLDER, demo_course.FOLDER):
        shutil.rmtree(folder / part, ignore_errors=True)
    for name in ("summary.json", *demo_report.PAGES):
        (folder / name).unlink(missing_ok=True)


async def _installation(settings: Settings, since: datetime) -> Tokens:
    """Do what `etude init` does, give the devices to a learner."""
    shown: list[Made] = []
    wish = Wish(operator="operator", password=None, device=DEVICE)
    await set_up(settings, wish, shown.append, Files(), SystemClock())
    async with (
        await Database.open(settings.database_url, connections=1) as database,
        database.transaction() as work,
    ):
        name, locale = text("demo.learner", terminal.locale()), terminal.locale()
        await add_learner(
            work.connection, learner_id=LEARNER, display_name=name, locale=locale, now=since
        )
        await hold_device(work.connection, device_id=DEVICE, learner_id=LEARNER, starts_at=since)
        staff = await demo_practice.furnish(work, LEARNER, since)
        scopes = (Scope.SESSIONS_READ, Scope.SESSIONS_WRITE)
        wanted = TokenRequest(kind="learner", principal_id=LEARNER, scopes=scopes)
        learner = await create_token(work.connection, wanted, since)
    (made,) = shown
    _require(made.upload is not None, "init")
    device = made.upload.token if made.upload else ""
    return Tokens(device=device, learner=learner.text, staff=staff)


def _practise(journals: Path, started_at: datetime) -> None:
    """Record the session in a process that is killed half-way, then in one that goes on."""
    crash = f"edge.journal.written:{CRASH_AT_EVENT}"
    _require(_record(journals, started_at, ETUDE_CRASH_AT=crash) == KILLED, "kill")
    (journal,) = journal_folders(journals)
    written = sum(1 for _ in journal.lines())
    _tell("crashed", written=written)
    _require(_record(journals, started_at) == 0, "resume")
    _tell("resumed", events=sum(1 for _ in journal.lines()), next=written + 1)


def _record(journals: Path, started_at: datetime, **environment: str) -> int:
    replay = (sys.executable, "-m", "etude.testing.replay")
    command = [*replay, str(journals), started_at.isoformat()]
    return subprocess.run(  # noqa: S603 - our own program
        command, env=os.environ | environment, check=False, stdin=subprocess.DEVNULL
    ).returncode


def _upload(journals: Path, port: int, token: str) -> UploadState:
    """Upload through a network that loses the first answer; return the end of it."""
    with (
        Relay(port) as network,
        HttpClient(network.url, bearer=token) as client,
        Outbox(journals, client, clock=SystemClock()) as outbox,
    ):
        network.lose_next_answer()
        (state,) = outbox.run_due()
        _require(state.status is UploadStatus.RETRYING, "cut")
        _tell("cut", wait_s=round(outbox.next_wait_s(), 1))
        for _ in range(MOST_ROUNDS):
            time.sleep(outbox.next_wait_s())
            (state,) = outbox.run_due()
            if state.status is UploadStatus.DONE:
                break
        _require(state.status is UploadStatus.DONE, "upload")
        _tell("uploaded", received=state.received, duplicates=state.duplicates_skipped)
        return state


def _read_back(
    url: str, token: str, journal: JournalFolder, shown: Recap, state: UploadState
) -> Summary:
    """Compare what the server gives back with what the device wrote and the protocol prints."""
    with HttpClient(url, bearer=token) as client:
        page = _get(client, "/api/v1/sessions")["items"]
        session = _get(client, f"/api/v1/sessions/{state.session_id}")
        reply = client.send("GET", f"/api/v1/sessions/{state.session_id}/events", b"", {})
        made = _get(client, f"/api/v1/sessions/{state.session_id}/recap")
    stored = reply.body.splitlines()
    written = [line.data or b"" for line in journal.lines()]
    _require(len(stored) == len(written), "count")
    _require(all(map(same_content, written, stored)), "meaning")
    sample = [(e.event_id, e.ts, e.signal, e.value, e.confidence) for e in sample_events()]
    events = [decode_line(line) for line in stored]
    _require([(e.event_id, e.ts, e.signal, e.value, e.confidence) for e in events] == sample, "id")
    _require(session["learner_id"] == LEARNER, "owner")
    _require(made["phase_summary"] == msgspec.to_builtins(shown.phase_summary), "recap")
    _tell("read_back", events=len(stored), learner=_learner())
    return Summary(
        sessions=len(page),
        events=len(stored),
        duplicates_skipped=state.duplicates_skipped,
        recap={"phase_summary": made["phase_summary"]},
    )


def _environment(way: Way) -> dict[str, str]:
    """Return what the server is told: it may publish, and is as small as it gets."""
    return {
        TOKEN_VARIABLE: secrets.token_urlsafe(LEAST_TOKEN_BYTES),
        "ETUDE_SPEECH_PROCESSES": str(int(way.speaks)),
        "ETUDE_WEB_PROCESSES": "1",
    }


def _course(site: Site) -> tuple[Coursed, Assigned]:
    """Make a course of a syllabus, publish it, load it back, assign its first lesson."""
    sounds = course_sounds(demo_course.SAMPLE, site.way)
    course_id, version, manifest = demo_course.publish_course(site.url, site.tokens.staff, sounds)
    loaded = demo_course.load_modules(site.folder, site.url, manifest)
    _tell("course", modules=loaded, version=version)
    assigned = demo_course.assign_module(
        site.url, site.tokens.staff, course_id, LEARNER, site.since
    )
    _tell("assigned", learner=_learner())
    return Coursed(manifest=manifest, loaded=loaded), assigned


def _practise_on_toys(site: Site, assigned: Assigned) -> tuple[Practised, Played]:
    """Let two toys follow their lessons, and say what came of it; return the assigned one, too."""
    logs.configure("error", process="demo")
    staff = site.tokens.staff
    instances = demo_practice.practise(
        site.folder,
        site.settings,
        site.url,
        token=staff,
        began_at=site.since,
        assigned=assigned,
        way=site.way,
    )
    of_learner = all(one["learner_id"] == LEARNER for one in instances.values())
    _require(of_learner, "learner")
    sessions = [instance["id"] for instance in instances.values()]
    turns = demo_practice.turns_of(site.url, staff, sessions, site.way)
    _tell("practised", toys=len(sessions), turns=len(turns))
    if site.way.speaks:
        tell_measured(turns)
    lesson = _examine_lesson(site, instances[PRACTISING.device_id], assigned)
    metrics = sum(len(turn["metrics"]) for turn in turns)
    return Practised(turns=len(turns), metrics=metrics), lesson


def _examine_lesson(site: Site, instance: Mapping[str, Any], assigned: Assigned) -> Played:
    """Read the report of the lesson that was assigned."""
    speaks = site.way.speaks
    page = site.folder / (demo_report.REPORT if speaks else demo_report.LESSON)
    report = demo_report.write_report(
        page, site.url, site.tokens.staff, instance["id"], whole=speaks
    )
    named = demo_course.require_named(report, page, assigned)
    words = {name: named[name] for name in ("title", "version", "scene_title")}
    _tell("practice_reported", page=page, **words)
    lasted_ms = instance["ended_at"] - instance["started_at"]
    return Played(name="lesson", report=report, minutes=round(lasted_ms / 60_000, 1))


def _examine_violin(site: Site, session_id: str) -> Played:
    """Read the report of the violin session."""
    page = site.folder / (demo_report.VIOLIN if site.way.speaks else demo_report.REPORT)
    report = demo_report.write_report(page, site.url, site.tokens.device, session_id)
    score = demo_report.told(report).overall_score
    _tell("reported", score="-" if score is None else score, report=page)
    return Played(name="violin", report=report, minutes=PRACTICE.total_seconds() / 60)


def _hand_on(site: Site, played: Played) -> Reported:
    """Give the learner a card of a session: of the one that `report.html` is of."""
    page, locale = site.folder / demo_report.CARD, terminal.locale()
    demo_report.write_card(
        page, site.url, site.tokens.learner, played.report, played.minutes, locale
    )
    session = text(f"demo.session.{played.name}", locale)
    _tell("handed_on", learner=_learner(), session=session, card=page)
    return demo_report.told(played.report)


def _learner() -> str:
    return text("demo.learner", terminal.locale())


def _get(client: HttpClient, path: str) -> dict[str, Any]:
    return msgspec.json.decode(client.send("GET", path, b"", {}).body, type=dict[str, Any])


def _tell_recap(shown: Recap) -> None:
    _tell("recap")
    for sentence in shown.highlights:
        terminal.print_note(f"     ★ {sentence}")
    for phase, counts in shown.phase_summary.items():
        name = text(f"demo.phase.{phase}", terminal.locale())
        counted = f"✓ {counts.positive}  △ {counts.uncertain}  ✗ {counts.issue}"
        terminal.print_note(f"     {counted}  {name}")


def _tell(key: str, **params: object) -> None:
    terminal.say(f"demo.{key}", **params)


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that is always on
    if not holds:
        raise DemoBrokenError(what=what)
