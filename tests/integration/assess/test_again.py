"""Assessed again: with engines that were not there, or are others now; what was said stays."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from etude.assess.again import ASSESS_AGAIN, Asked, ask_for, ask_of, is_stale
from etude.assess.assessing import StoredTurn
from etude.assess.metrics import load_methods
from etude.assess.spoken_methods import PRONUNCIATION
from etude.events.ndjson import decode_line
from etude.files import armed
from etude.jobs import counted
from etude.sessions.instance_puts import InstancePut
from etude.sessions.instances import Sender, put
from etude.sessions.reading import Filter
from etude.sessions.turns import HeardLater, Metric, Turn
from etude.store import Blobs
from etude.testing.assessing import SESSION, end, folded, keep, send, start, turn
from etude.testing.assessing import AssessingWorker as Worker
from etude.testing.assessing import HearingEngines as Engines
from etude.testing.school import School

SPOKEN = {"speech_rate_v1", "pause_ratio_v1", PRONUNCIATION, "speech_rate_v2", "pause_ratio_v2"}


class CrashError(BaseException):
    """Stands for the end of the process: nothing handles it."""


@pytest.fixture
def recorded(school: School, blobs: Blobs, sound: bytes) -> School:
    """A school with a session of two turns that was assessed without any engine."""
    lesson(school, blobs, sound, SESSION)
    school.clock.advance(2)
    Worker(school, blobs, None).work()
    return school


def lesson(school: School, blobs: Blobs, sound: bytes, session: str, *, steps: int = 2) -> None:
    sha256 = hashlib.sha256(sound).hexdigest()
    turns = (turn(2 + step, step, audio_id=sha256) for step in range(steps))
    send(school, start(), *turns, end(2 + steps), session=session)
    keep(school, blobs, sound, session)


def ask(school: School, wanted: Filter | None = None) -> Asked:
    asked: Asked = school.run(ask_for(school.database, school.clock, wanted or Filter()))
    school.clock.advance(1)
    return asked


def values(school: School, step: int = 0, session: str = SESSION) -> dict[str, Any]:
    found = folded(school, session).instance.turns[step]
    return {one.method: one.value for one in found.metrics}


def made(school: School, session: str = SESSION) -> list[tuple[str | None, str]]:
    events = [decode_line(one) for one in school.stored(session)]
    return [(one.correlation_id, one.signal) for one in events if one.is_server_made]


def test_what_had_no_engine_is_heard_when_there_is_one(recorded: School, blobs: Blobs) -> None:
    """Every turn gets its numbers and its text; that there was no engine stays written."""
    assert all(values(recorded)[name] is None for name in SPOKEN)
    assert ask(recorded) == Asked(sessions=1, without_engine=1)
    before = recorded.stored(SESSION)
    Worker(recorded, blobs, Engines()).work()
    for step in range(2):
        assert all(values(recorded, step)[name] is not None for name in SPOKEN)
        assert folded(recorded).instance.turns[step].asr_text == "the cat"
    assert set(before) < set(recorded.stored(SESSION))


def test_done_twice_nothing_is_done_twice(recorded: School, blobs: Blobs) -> None:
    """Another run with the same engines writes nothing; one that knows them hears nothing."""
    ask(recorded)
    Worker(recorded, blobs, Engines()).work()
    stored = recorded.stored(SESSION)
    engines = Engines()
    worker = Worker(recorded, blobs, engines)
    ask(recorded)
    assert worker.work() >= 1
    assert engines.asked == 1  # by the first turn they are known
    ask(recorded)
    worker.work()
    assert engines.asked == 1
    assert recorded.stored(SESSION) == stored


def test_another_model_says_its_own_beside_the_old(recorded: School, blobs: Blobs) -> None:
    """A new event names the one it replaces, the turn shows the newer, the old one is unchanged."""
    ask(recorded)
    Worker(recorded, blobs, Engines("the cat")).work()
    before = recorded.stored(SESSION)
    assert values(recorded)["wer_v1"] == 0.0
    ask(recorded)
    Worker(recorded, blobs, Engines("a cat", model="whisper-base/1")).work()
    assert values(recorded)["wer_v1"] == 0.5
    assert folded(recorded).instance.turns[0].asr_text == "a cat"
    events = {one.event_id: one for one in map(decode_line, recorded.stored(SESSION))}
    newer = [one for one in events.values() if (one.meta or {}).get("replaces")]
    assert newer
    assert all(events[one.meta["replaces"]].signal == one.signal for one in newer if one.meta)
    assert set(before) < set(recorded.stored(SESSION))


def test_back_to_the_first_model_is_said_again(recorded: School, blobs: Blobs) -> None:
    """What had been said before another model was tried counts again, as an event of its own."""
    for text, model in (("the cat", "m/1"), ("a cat", "m/2"), ("the cat", "m/1")):
        ask(recorded)
        Worker(recorded, blobs, Engines(text, model=model)).work()
    assert values(recorded)["wer_v1"] == 0.0
    assert folded(recorded).instance.turns[0].asr_text == "the cat"


def test_without_an_engine_nothing_is_taken_back(recorded: School, blobs: Blobs) -> None:
    """Numbers stay where there is no engine any more, and where every engine fails."""
    ask(recorded)
    Worker(recorded, blobs, Engines()).work()
    stored = recorded.stored(SESSION)
    ask(recorded)
    Worker(recorded, blobs, None).work()
    failing = Worker(recorded, blobs, Engines(failures=1_000, model="m/2"))
    ask(recorded)
    for _ in range(8):
        recorded.clock.advance(120)
        failing.work()
    assert recorded.stored(SESSION) == stored

    async def states() -> Any:
        async with recorded.database.read() as connection:
            return await counted(connection, ASSESS_AGAIN)

    assert list(recorded.run(states())) == ["done"]


def test_who_had_no_engine_comes_first(recorded: School, blobs: Blobs, sound: bytes) -> None:
    """Sessions with `no_engine` are carried out before those that only have older numbers."""
    recorded.clock.advance(60)
    lesson(recorded, blobs, sound, "task-2")
    recorded.clock.advance(2)
    Worker(recorded, blobs, Engines()).work()
    lesson(recorded, blobs, sound, "task-3")
    recorded.clock.advance(2)
    Worker(recorded, blobs, None).work()
    assert ask(recorded) == Asked(sessions=3, without_engine=2)
    worker = Worker(recorded, blobs, Engines(model="m/2"))
    worker.work()
    again = [recorded.row(name).session_key for name in (SESSION, "task-3", "task-2")]
    assert worker.order[:3] == again


def test_only_what_was_asked_for(recorded: School, blobs: Blobs, sound: bytes) -> None:
    """By time, by device, by session; what is open or was never recorded is not asked for."""
    recorded.clock.advance(3600)
    later = recorded.clock.now() - timedelta(minutes=5)
    lesson(recorded, blobs, sound, "task-2")
    send(recorded, start(), turn(2, 0, asr_text="the cat"), end(3), session="no-sound")
    send(recorded, start(), turn(2, 0), session="open")
    keep(recorded, blobs, sound, "open")
    assert ask(recorded).sessions == 2
    assert ask(recorded, Filter(since=later)).sessions == 1
    assert ask(recorded, Filter(device_key=recorded.devices["toy-2"])).sessions == 0
    one = recorded.run(ask_of(recorded.database, recorded.clock, [recorded.row("task-2")]))
    assert one.sessions == 1


@pytest.mark.parametrize(
    "point", ["assess.turns.written", "sessions.ingest.after_commit", "assess.again.before_commit"]
)
def test_a_kill_anywhere_loses_and_doubles_nothing(
    recorded: School, blobs: Blobs, point: str
) -> None:
    """Another worker goes on: every turn has its new numbers, each once."""
    ask(recorded)

    def crash(reached: str) -> None:
        if reached == point:
            raise CrashError

    with armed(crash), pytest.raises(CrashError):
        Worker(recorded, blobs, Engines()).work()
    recorded.clock.advance(31)
    Worker(recorded, blobs, Engines()).work()
    counts = Counter(one for one in made(recorded) if one[1] in SPOKEN)
    assert len(counts) == 2 * len(SPOKEN)
    assert set(counts.values()) == {2}  # without an engine, then with one
    assert all(values(recorded, step)[name] is not None for step in (0, 1) for name in SPOKEN)


def test_a_kill_while_it_is_asked_for_asks_for_nothing(recorded: School, blobs: Blobs) -> None:
    """The page is not there; asked again, it is."""

    def crash(reached: str) -> None:
        if reached == "assess.again.asked":
            raise CrashError

    with armed(crash), pytest.raises(CrashError):
        ask(recorded)
    assert ask(recorded).sessions == 1
    Worker(recorded, blobs, Engines()).work()
    assert values(recorded)[PRONUNCIATION] is not None


def test_another_servers_metrics_are_its_own(recorded: School, blobs: Blobs) -> None:
    """What was put is not replaced by what is found here."""
    sent = msgspec.json.decode(
        b'{"app_id":"a","task_id":"t","status":"completed","turns":[{"step_index":0,'
        b'"metrics":[{"method":"wer_v1","value":0.75}]}]}',
        type=InstancePut,
    )
    sender = Sender(principal=recorded.gateway(), device_key=recorded.devices["toy-1"])
    recorded.run(put(recorded.database, recorded.ingest, SESSION, sent, sender))
    ask(recorded)
    Worker(recorded, blobs, Engines()).work()
    assert values(recorded)["wer_v1"] == 0.75
    assert values(recorded)[PRONUNCIATION] is not None


def metric(method: str, **detail: str) -> Metric:
    return Metric(method=method, value=None if "reason" in detail else 1.0, detail=detail)


NOW = {"recogniser": "e/1", "model": "m/1", "aligner": "a/1", "assessor": "p/1"}


@pytest.mark.parametrize(
    ("metrics", "now", "stale"),
    [
        ((metric("cer_v1", recogniser="e/1", model="m/1"),), NOW, False),
        ((metric("cer_v1", recogniser="e/1", model="m/1"),), {}, True),
        ((metric("cer_v1", recogniser="e/2", model="m/1"),), NOW, True),
        ((metric("cer_v1", recogniser="e/1", model="m/0"),), NOW, True),
        ((metric("cer_v1", assessor="p/0"),), NOW, True),
        ((metric("cer_v1", reason="no_engine"),), NOW, True),
        ((metric("cer_v1", reason="no_engine", model="m/1"),), NOW, False),
        ((metric("cer_v1", reason="off_task", model="m/1"),), NOW, False),
        ((metric("cer_v1", model="m/1"), metric("cer_v0", model="m/0")), NOW, False),
        ((), NOW, True),
    ],
)
def test_stale_is_what_other_engines_have_said(
    metrics: Sequence[Metric], now: dict[str, str], *, stale: bool
) -> None:
    """The versions beside the numbers decide, and a turn that nobody has heard is stale."""
    methods = {"cer_v1": load_methods()["cer_v1"]}
    stored = StoredTurn(
        turn=Turn(step_index=0, expected_text="the cat", metrics=tuple(metrics)),
        recording=None,
        said_by={one.method: "e" for one in metrics},
    )
    assert is_stale(stored, methods, now) is stale


def test_a_method_that_is_new_makes_a_turn_stale() -> None:
    """A better method comes with a name of its own, and is heard."""
    said = metric("cer_v1", recogniser="e/1", model="m/1")
    stored = StoredTurn(
        turn=Turn(step_index=0, expected_text="the cat", metrics=(said,)),
        recording=None,
        said_by={"cer_v1": "e"},
        heard=HeardLater(event_id="t", text="the cat", engines={"model": "m/1"}),
    )
    methods = {name: load_methods()[name] for name in ("cer_v1", "wer_v1")}
    assert is_stale(stored, methods, NOW)
    assert not is_stale(stored, {"cer_v1": methods["cer_v1"]}, NOW)
