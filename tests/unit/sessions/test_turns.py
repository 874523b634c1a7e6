from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from etude.events.model import Event
from etude.sessions.turns import (
    VERDICTS,
    About,
    Folded,
    Received,
    TaskInstance,
    fold,
    without_verdicts,
)

ABOUT = About(session_id="s1", device_id="toy-1", learner_id="anna", started_ms=1_000_000)
TASK = {"app_id": "reading", "task_id": "follow", "mode": "SHADOWING"}
SERVER = {"producer": "server"}


def made(number: int, event_type: str, value: Any, **fields: Any) -> Event:
    return Event(
        event_id=f"e{number}",
        session_id="s1",
        event_type=event_type,
        value=value,
        **{"ts": float(number), "signal": "read_aloud", "seq": number, **fields},
    )


def received(*events: Event) -> list[Received]:
    return [
        Received(event=event, receipt=receipt, received_ms=5_000_000 + receipt)
        for receipt, event in enumerate(events, 1)
    ]


def folded(*events: Event, about: About = ABOUT) -> TaskInstance:
    found = fold(about, received(made(0, "session_start", TASK, seq=None), *events))
    assert found is not None
    return found.instance


def metric(number: int, step: int, value: float | None, **fields: Any) -> Event:
    detail = {"step_index": step, "value": value}
    return made(
        number,
        "audio_observation",
        detail,
        **{"seq": None, "signal": "cer_v1", "meta": SERVER, **fields},
    )


def test_a_session_that_names_no_task_is_no_instance() -> None:
    """Music, an empty name, a name that is no text: none of them is a task."""
    for value in ({}, {"app_id": "a"}, {"app_id": "", "task_id": "t"}, {"app_id": 1, "task_id": 2}):
        assert fold(ABOUT, received(made(1, "session_start", value))) is None
    assert fold(ABOUT, received(made(1, "posture_observation", TASK))) is None


def test_a_silent_window_is_a_turn_too() -> None:
    """The clock's own event makes the row; what was not said is null."""
    closed = made(2, "listen_window_closed", {"step_index": 0, "window_ms": 1080, "heard": False})
    (turn,) = folded(closed).turns
    assert (turn.window_ms, turn.asr_text, turn.metrics, turn.assessed_at) == (1080, None, (), None)


def test_the_producers_order_counts_and_not_the_uploads() -> None:
    """A step that was repeated ends with what came later in the session, not in the mail."""
    early = made(3, "signal_observation", {"step_index": 0, "asr_text": "first"})
    late = made(7, "signal_observation", {"step_index": 0, "asr_text": "second"})
    for events in ((early, late), (late, early)):
        assert folded(*events).turns[0].asr_text == "second"


def test_metrics_of_the_server_are_one_a_method_and_say_when() -> None:
    """A better method is a new row, the same one again takes its place; null values are kept."""
    turn = folded(
        metric(1, 0, 0.5),
        metric(2, 0, 0.25),
        metric(3, 0, None, signal="pause_ratio_v1"),
    ).turns[0]
    assert [(each.method, each.value) for each in turn.metrics] == [
        ("cer_v1", 0.25),
        ("pause_ratio_v1", None),
    ]
    assert turn.assessed_at == 5_000_004


def test_only_the_server_makes_metrics() -> None:
    """What a device says it measured is an event of the session, no metric of a turn."""
    instance = folded(metric(1, 0, 0.5, meta=None))
    assert instance.turns == ()
    assert [each["type"] for each in instance.events] == ["audio_observation"]


def heard(number: int, text: Any, **fields: Any) -> Event:
    value = {"step_index": 0, "asr_text": text, "recogniser": "e/1", "model": "m/1"}
    return made(
        number,
        "speech_recognised",
        value,
        **{"seq": None, "signal": "recognised_text", "meta": SERVER, **fields},
    )


OWN = st.sampled_from([None, "the bat"])
LATER = st.lists(st.sampled_from([None, "", 7, "the cat", "a cat"]), max_size=3)


@given(own=OWN, later=LATER, first=st.booleans())
def test_a_text_that_was_heard_later_fills_in_and_replaces_nothing(
    own: str | None, later: list[Any], *, first: bool
) -> None:
    """The turn's own text stands; else the last one that was heard, whatever comes first."""
    observed = made(3, "signal_observation", {"step_index": 0, "asr_text": own})
    texts = [heard(10 + place, text) for place, text in enumerate(later)]
    events = [observed, *texts] if first else [*texts, observed]
    (turn,) = folded(*events).turns
    usable = [text for text in later if isinstance(text, str) and text]
    assert turn.asr_text == (own or (usable[-1] if usable else None))


def test_what_was_heard_is_the_servers_word_only() -> None:
    """A device's event of that type is listed like any other, and is no text of a turn."""
    observed = made(3, "signal_observation", {"step_index": 0, "asr_text": None})
    found = folded(observed, heard(4, "the cat", meta=None, seq=4))
    assert found.turns[0].asr_text is None
    assert [event["type"] for event in found.events] == ["speech_recognised"]


def test_the_fold_names_the_events_behind_what_the_server_said() -> None:
    """So that a newer one can say which it replaces; a set that was put speaks for itself."""
    event = made(0, "session_start", TASK, seq=None)
    put = {"producer": "server", "metric_set": "s", "place": 0}
    found = fold(
        ABOUT,
        received(event, metric(1, 0, 0.5), metric(2, 0, 0.6), metric(3, 1, 0.7), heard(4, "a cat")),
    )
    assert found is not None
    assert found.said_by == {(0, "cer_v1"): "e2", (1, "cer_v1"): "e3"}
    assert (found.heard[0].event_id, found.heard[0].engines["model"]) == ("e4", "m/1")
    foreign = fold(ABOUT, received(event, metric(1, 0, 0.5), metric(2, 0, 0.6, meta=put)))
    assert foreign is not None
    assert foreign.said_by == {}


def test_an_inline_answer_is_a_metric_of_the_turn() -> None:
    """Of their verdict inline tasks store nothing but `exact_match_v1` (`docs/rules.md 19`)."""
    detail = {"question": "12", "answer": "21", "exact_match_v1": 1, "passed": True}
    turn = folded(made(1, "signal_observation", {"step_index": 0, "detail": detail})).turns[0]
    assert msgspec.to_builtins(list(turn.metrics)) == [{"method": "exact_match_v1", "value": 1}]


def test_a_disconnect_is_shown_until_it_is_over() -> None:
    """`disconnected_at` while it runs; abandoned without an end, it was cancelled."""
    lost = made(2, "connection_lost", {"step_index": 0})
    back = made(3, "connection_resumed", {"step_index": 0})
    assert (folded(lost).status, folded(lost).disconnected_at) == ("running", 1_002_000)
    assert folded(lost, back).disconnected_at is None
    given_up = msgspec.structs.replace(ABOUT, abandoned=True, last_ts_s=2.0)
    instance = folded(lost, about=given_up)
    assert (instance.status, instance.end_reason) == ("cancelled", "disconnected")
    assert instance.ended_at == 1_002_000


def test_the_status_follows_from_the_reason_where_it_is_not_told() -> None:
    """Only the completed reasons complete; the exit phrase cancels (`docs/rules.md 49`)."""
    for reason, status in (
        ("list_completed", "completed"),
        ("play_completed", "completed"),
        ("exit_phrase", "cancelled"),
        ("error", "cancelled"),
        (None, "completed"),
    ):
        ended = folded(made(1, "session_end", {"end_reason": reason, "status": "graded"}))
        assert (ended.status, ended.end_reason, ended.ended_at) == (status, reason, 1_001_000)


def test_a_broken_counter_breaks_nothing() -> None:
    """Any finite `ts` and any value of any type is folded."""
    wild = [
        made(number, event_type, value, ts=1e308)
        for number, (event_type, value) in enumerate(
            (event_type, value)
            for event_type in (
                "session_start",
                "session_end",
                "connection_lost",
                "signal_observation",
                "listen_window_closed",
                "audio_observation",
                "whatever",
            )
            for value in (None, [], 7, "x", {"step_index": True}, {"step_index": 10**9}, {"a": [1]})
        )
    ]
    assert folded(*wild).turns == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*sorted(VERDICTS), "kept", "other"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_verdict_is_left_at_any_depth(value: Any) -> None:
    """What judges goes; dropping again changes nothing."""

    def names(node: Any) -> set[str]:
        if isinstance(node, dict):
            return set(node).union(*(names(inner) for inner in node.values()))
        return set().union(*(names(inner) for inner in node)) if isinstance(node, list) else set()

    kept = without_verdicts(value)
    assert not names(kept) & VERDICTS
    assert without_verdicts(kept) == kept


TEXTS = st.none() | st.sampled_from(["a", "b", "c"])
STEPS = st.integers(0, 2)
VALUES = st.fixed_dictionaries(
    {"step_index": STEPS},
    optional={
        "expected_text": TEXTS,
        "asr_text": TEXTS,
        "audio_id": TEXTS,
        "window_ms": st.integers(0, 9),
        "assessed_at": st.none() | st.integers(1, 9),
    },
)


@st.composite
def histories(draw: st.DrawFn) -> list[Received]:
    """A session's events with receipts: a producer's with `seq`, and others without."""
    events = [made(0, "session_start", TASK, seq=1)]
    for number in range(1, draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["turn", "put", "metric", "set", "lost", "resumed", "end"]))
        seq = number + 1
        if kind in {"turn", "put"}:
            value = draw(VALUES)
            place = seq if kind == "turn" else None
            events.append(made(number, "signal_observation", value, seq=place))
        elif kind == "metric":
            events.append(metric(number, draw(STEPS), draw(st.none() | st.floats(0, 1))))
        elif kind == "set":
            meta = {**SERVER, "metric_set": f"m{number}", "place": 0}
            events.append(metric(number, draw(STEPS), draw(st.floats(0, 1)), meta=meta))
        elif kind == "end":
            events.append(made(number, "session_end", {"end_reason": draw(TEXTS)}, seq=seq))
        else:
            events.append(made(number, f"connection_{kind}", {}, seq=seq))
    receipts = draw(st.permutations(range(1, len(events) + 1)))
    return [
        Received(event=event, receipt=receipt, received_ms=receipt)
        for event, receipt in zip(events, receipts, strict=True)
    ]


def result(history: list[Received]) -> Folded:
    found = fold(ABOUT, history)
    assert found is not None
    return found


@given(histories(), st.data())
def test_the_order_in_which_events_are_read_changes_nothing(
    history: list[Received], data: st.DataObject
) -> None:
    """Whatever order they come in, and however often: the same instance, given their receipts."""
    shuffled = data.draw(st.permutations(history))
    assert result(shuffled) == result(history)


@given(histories(), st.data())
def test_when_a_producers_events_arrive_changes_nothing(
    history: list[Received], data: st.DataObject
) -> None:
    """Events with `seq` may swap their receipts: the producer's order is in them."""
    numbered = [each for each in history if each.event.seq is not None]
    others = [each for each in history if each.event.seq is None]
    receipts = data.draw(st.permutations([each.receipt for each in numbered]))
    swapped = [
        msgspec.structs.replace(each, receipt=receipt)
        for each, receipt in zip(numbered, receipts, strict=True)
    ]
    assert result(swapped + others) == result(history)


@given(histories())
def test_null_and_nothing_never_erase(history: list[Received]) -> None:
    """Once a text or a metric was there, each longer history has one in its place."""
    ordered = sorted(history, key=lambda each: (each.event.seq or 2**60, each.receipt))
    before: dict[int, Any] = {}
    for count in range(1, len(ordered) + 1):
        found = fold(ABOUT, ordered[:count])
        now = {} if found is None else {turn.step_index: turn for turn in found.instance.turns}
        for step, turn in before.items():
            for name in ("expected_text", "asr_text", "audio_id", "assessed_at"):
                assert getattr(turn, name) is None or getattr(now[step], name) is not None
            assert len(now[step].metrics) > 0 or not turn.metrics
        before = now
