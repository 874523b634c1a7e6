"""`etude demo`: the whole loop on real input, with a crash and a lost network on the way.

Everything is real but the time: processes, files, sockets, kills. The session is the protocol's own
three minutes of violin practice; it takes no time, because its clock is set by the sample. Then a
course is made of a syllabus, and a toy practises it.
"""

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from etude.cli import demo_course, demo_practice, demo_report, logs, terminal
from etude.cli.demo_course import Assigned, Coursed
from etude.cli.demo_practice import PRACTISING, Practised
from etude.cli.demo_report import Reported
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
from etude.rubric.recap import Recap, recap
from etude.settings import SQLITE_FILE, Settings, load
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


def demo(
    *,
    folder: Annotated[Path, typer.Option(help="Folder of what the demo makes.")] = Path("demo"),
    as_json: terminal.JsonOption = False,
) -> None:
    """Practise, crash, lose the network, upload; a syllabus becomes a course that a toy plays."""
    began_s = time.monotonic()
    folder = folder.absolute()
    _empty(folder)
    data, journals = folder / "server", folder / "device"
    settings = load(data=data, database_url=f"sqlite:///{data / SQLITE_FILE}")
    started_at = SystemClock().now() - PRACTICE
    token, reader = asyncio.run(_installation(settings, started_at))
    _tell("installed", folder=folder)
    _practise(journals, started_at)
    (journal,) = journal_folders(journals)
    shown = recap(journal.events(), locale=terminal.locale())
    _tell_recap(shown)
    with ServerProcess(data, command="serve", environment=_environment()) as server:
        _tell("serving", url=server.url)
        state = _upload(journals, server.port, token)
        summary = _read_back(server.url, token, journal, shown, state)
        course, assigned = _course(folder, server.url, reader, started_at)
        practised = _practise_on_toys(folder, settings, server.url, reader, started_at, assigned)
        report = _report(folder, server.url, token, state.session_id, shown)
        server.stop()
    summary = msgspec.structs.replace(summary, course=course, practice=practised, report=report)
    encoded = msgspec.json.format(msgspec.json.encode(summary), indent=2)
    replace_file(Files(), folder / "summary.json", encoded + b"\n", mode=0o644)
    seconds = round(time.monotonic() - began_s)
    _tell("done", summary=folder / "summary.json", seconds=seconds)
    if as_json:
        terminal.print_json(summary)


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
    for name in ("summary.json", demo_report.REPORT, demo_report.CARD, demo_course.PAGE):
        (folder / name).unlink(missing_ok=True)


async def _installation(settings: Settings, since: datetime) -> tuple[str, str]:
    """Do what `etude init` does, give the devices to a learner.

    Returns the upload token of the first device, and a token that reads everything.
    """
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
        reader = await demo_practice.furnish(work, LEARNER, since)
    (made,) = shown
    _require(made.upload is not None, "init")
    return made.upload.token if made.upload else "", reader


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
    _tell("read_back", events=len(stored), learner=text("demo.learner", terminal.locale()))
    return Summary(
        sessions=len(page),
        events=len(stored),
        duplicates_skipped=state.duplicates_skipped,
        recap={"phase_summary": made["phase_summary"]},
    )


def _environment() -> dict[str, str]:
    """Return what the server is told: it may publish, hears nothing, and is as small as it gets."""
    return {
        TOKEN_VARIABLE: secrets.token_urlsafe(LEAST_TOKEN_BYTES),
        "ETUDE_SPEECH_PROCESSES": "0",
        "ETUDE_WEB_PROCESSES": "1",
    }


def _course(folder: Path, url: str, token: str, since: datetime) -> tuple[Coursed, Assigned]:
    """Make a course of a syllabus, publish it, load it back, assign its first lesson."""
    course_id, version, manifest = demo_course.publish_course(url, token)
    loaded = demo_course.load_modules(folder, url, manifest)
    _tell("course", modules=loaded, version=version)
    assigned = demo_course.assign_module(url, token, course_id, LEARNER, since)
    _tell("assigned", learner=text("demo.learner", terminal.locale()))
    return Coursed(manifest=manifest, loaded=loaded), assigned


def _practise_on_toys(
    folder: Path,
    settings: Settings,
    url: str,
    reader: str,
    began_at: datetime,
    assigned: Assigned,
) -> Practised:
    """Let two toys follow their lessons, and say what came of it."""
    logs.configure("error", process="demo")
    sessions = demo_practice.practise(
        folder,
        settings,
        url,
        token=reader,
        learner_id=LEARNER,
        began_at=began_at,
        assigned=assigned,
    )
    practised = demo_practice.counted(url, reader, sessions.values())
    _tell("practised", toys=len(sessions), turns=practised.turns)
    session_id = sessions[PRACTISING.device_id]
    named = demo_course.report_of(folder, url, reader, session_id, assigned)
    page = folder / demo_course.PAGE
    words = {name: named[name] for name in ("title", "version", "scene_title")}
    _tell("practice_reported", page=page, **words)
    return practised


def _report(folder: Path, url: str, token: str, session_id: str, shown: Recap) -> Reported:
    """Read the examiner's report of the violin session, and give its learner a card."""
    language = terminal.locale()
    report = demo_report.report_and_card(folder, url, token, session_id, shown, language)
    score = "-" if report.overall_score is None else report.overall_score
    files = {"report": folder / demo_report.REPORT, "card": folder / demo_report.CARD}
    _tell("reported", score=score, **files)
    return report


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
