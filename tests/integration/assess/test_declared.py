"""What an app declares about assessment holds: in the sweep, live, again, and for who waits."""

import hashlib
from typing import Any

import pytest

from etude.assess.again import Asked, ask_for
from etude.assess.metrics import load_methods
from etude.assess.sweep import is_pending
from etude.practice.apps import shipped_apps
from etude.practice.records import Mode, SessionStart
from etude.practice.session_events import start_meta
from etude.sessions import media
from etude.sessions import repository as sessions
from etude.sessions.reading import Filter
from etude.store import Blobs
from etude.testing.assessing import SESSION, end, folded, keep, send, start, turn
from etude.testing.assessing import AssessingWorker as Worker
from etude.testing.assessing import HearingEngines as Engines
from etude.testing.school import School

EVERY = set(load_methods())
TWO = {"cer_v1", "speech_rate_v2"}
MATCH = "exact_match_v1"


def recorded(
    school: School, blobs: Blobs, sound: bytes, begun: dict[str, Any], **fields: Any
) -> str:
    """Two turns with one recording; its name."""
    sha256 = hashlib.sha256(sound).hexdigest()
    send(school, begun, *(turn(2 + step, step, audio_id=sha256, **fields) for step in range(2)))
    keep(school, blobs, sound)
    return sha256


def said(school: School) -> list[set[str]]:
    turns = folded(school).instance.turns
    return [{one.method for one in each.metrics} for each in turns]


def assessed(school: School, worker: Worker) -> None:
    """Live, at the end of the session, and again."""
    school.clock.advance(2)
    worker.work()
    send(school, end(9))
    school.clock.advance(2)
    worker.work()
    asked: Asked = school.run(ask_for(school.database, school.clock, Filter()))
    assert asked.sessions == 1
    school.clock.advance(2)
    worker.work()


def pending(school: School) -> bool:
    async def ask() -> bool:
        async with school.database.read() as connection:
            found = await sessions.find(connection, SESSION)
            assert found is not None
            return await is_pending(connection, found.session_key, load_methods())

    answer: bool = school.run(ask())
    return answer


def kept(school: School) -> list[str]:
    async def ask() -> list[str]:
        async with school.database.read() as connection:
            found = await sessions.find(connection, SESSION)
            assert found is not None
            return [one.sha256 for one in await media.listed(connection, found.session_key)]

    names: list[str] = school.run(ask())
    return names


def test_a_disabled_assessment_leaves_the_recording_and_no_metric(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """Nobody hears it, nobody waits for it, and it stays where it is."""
    engines = Engines()
    begun = start(assessment={"enabled": False, "methods": []})
    sha256 = recorded(school, blobs, sound, begun)
    assert not pending(school)
    assessed(school, Worker(school, blobs, engines))
    assert (said(school), engines.asked) == ([set(), set()], 0)
    assert not any(b'"producer":"server"' in one for one in school.stored(SESSION))
    assert kept(school) == [sha256]


def test_named_methods_and_no_others_are_asked(school: School, blobs: Blobs, sound: bytes) -> None:
    """Two are named: exactly these have spoken, and are waited for until they have."""
    begun = start(assessment={"enabled": True, "methods": sorted(TWO)})
    recorded(school, blobs, sound, begun)
    assert pending(school)
    engines = Engines()
    assessed(school, Worker(school, blobs, engines))
    assert said(school) == [TWO, TWO]
    assert not pending(school)
    # Again, the first turn tells what the engines are called now; then nothing is missing.
    assert engines.asked == 3


def test_nobody_waits_for_what_has_nothing_to_say(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """Of a recording to which no text belongs a text method says nothing, and that is all."""
    begun = start(assessment={"enabled": True, "methods": ["cer_v1"]})
    recorded(school, blobs, sound, begun, expected_text=None)
    assert pending(school)
    school.clock.advance(2)
    Worker(school, blobs, Engines()).work()
    assert said(school) == [set(), set()]
    assert not pending(school)


def test_a_method_that_is_not_installed_is_not_waited_for(
    school: School, blobs: Blobs, sound: bytes
) -> None:
    """Its name may be wrong, or its package gone: the session has no metric."""
    begun = start(assessment={"enabled": True, "methods": ["gone_v1"]})
    recorded(school, blobs, sound, begun)
    assert not pending(school)
    assessed(school, Worker(school, blobs, Engines()))
    assert said(school) == [set(), set()]


@pytest.mark.parametrize(
    "assessment", [None, {"enabled": True, "methods": [MATCH]}, {"enabled": True}]
)
def test_inline_turns_keep_their_exact_match_and_get_nothing_else(
    school: School, blobs: Blobs, sound: bytes, assessment: object
) -> None:
    """The answer was judged in the stream; older sessions, which declare nothing, likewise."""
    begun = start("INLINE", assessment)
    recorded(school, blobs, sound, begun, expected_text="4 2", asr_text="4 2", detail={MATCH: 1})
    assert not pending(school)
    engines = Engines()
    assessed(school, Worker(school, blobs, engines))
    assert (said(school), engines.asked) == ([{MATCH}, {MATCH}], 0)


@pytest.mark.parametrize(
    "address",
    [
        ("english_learning", "shadowing"),
        ("chinese_reading", "follow_read"),
        ("story_time", "retelling"),
        ("story_time", "check_in"),
    ],
)
def test_what_ships_is_assessed_by_every_method(
    school: School, blobs: Blobs, sound: bytes, address: tuple[str, str]
) -> None:
    """The shipped tasks name none, so each one that is installed speaks."""
    task = shipped_apps().task(*address)
    declared = SessionStart(
        device_id="toy-1",
        app_id=task.app_id,
        task_id=task.task_id,
        mode=Mode.SHADOWING,
        assessment=task.assessment.told(),
    )
    begun = start("SHADOWING", start_meta(declared)["assessment"])
    recorded(school, blobs, sound, begun)
    assert pending(school)
    assessed(school, Worker(school, blobs, Engines()))
    assert said(school) == [EVERY, EVERY]
    assert not pending(school)
