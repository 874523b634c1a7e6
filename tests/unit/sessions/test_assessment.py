"""By which methods a session's turns are assessed: what its start declares, and its mode."""

import pytest

from etude.events.model import Event
from etude.sessions.assessment import NO_ASSESSMENT, Assessment
from etude.sessions.turns import About, Received, fold

INSTALLED = {"cer_v1": 1, "wer_v1": 2, "pause_ratio_v2": 3}


def begun(number: int, mode: str, meta: dict[str, object] | None, seq: int | None) -> Received:
    value = {"app_id": "reading", "task_id": "follow", "mode": mode}
    event = Event(
        event_id=f"e{number}",
        session_id="s1",
        event_type="session_start",
        signal="session_begin",
        ts=0.0,
        value=value,
        meta=meta,
        seq=seq,
    )
    return Received(event=event, receipt=number, received_ms=1)


def assessment(*starts: Received) -> Assessment:
    folded = fold(About(session_id="s1", device_id=None, learner_id=None, started_ms=0), starts)
    assert folded is not None
    return folded.assessment


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (Assessment(), set(INSTALLED)),
        (Assessment(methods=("wer_v1", "cer_v1")), {"cer_v1", "wer_v1"}),
        (Assessment(methods=("gone_v1", "cer_v1")), {"cer_v1"}),
        (Assessment(methods=("gone_v1",)), set()),
        (Assessment(enabled=False, methods=("cer_v1",)), set()),
        (NO_ASSESSMENT, set()),
    ],
)
def test_named_methods_are_asked_and_without_names_all(said: Assessment, asked: set[str]) -> None:
    """What is not installed is not asked; of what is disabled nothing is."""
    assert set(said.among(INSTALLED)) == asked


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, Assessment()),
        ({}, Assessment()),
        ({"assessment": {"enabled": False}}, NO_ASSESSMENT),
        ({"assessment": {"methods": ["cer_v1"], "more": 1}}, Assessment(methods=("cer_v1",))),
        ({"assessment": {"enabled": "no"}}, Assessment()),
        ({"assessment": {"methods": "cer_v1"}}, Assessment()),
        ({"assessment": [False]}, Assessment()),
    ],
)
def test_the_start_declares_it(meta: dict[str, object] | None, expected: Assessment) -> None:
    """A session that says nothing, or nothing that can be read, is assessed by everything."""
    assert assessment(begun(1, "SHADOWING", meta, 1)) == expected


@pytest.mark.parametrize("mode", ["INLINE", "CHAT", "PLAY_AUDIO", "TRANSLATE"])
@pytest.mark.parametrize("meta", [None, {"assessment": {"enabled": True}}])
def test_nothing_is_asked_where_nothing_is_deferred(
    mode: str, meta: dict[str, object] | None
) -> None:
    """Inline turns are judged in the stream, the others are never assessed, whoever wrote them."""
    assert assessment(begun(1, mode, meta, 1)) == NO_ASSESSMENT


def test_another_servers_word_about_a_session_takes_no_declaration_back() -> None:
    """A `PUT` has no `assessment`, and so says nothing about it."""
    ours = begun(1, "SHADOWING", {"assessment": {"enabled": False}}, 1)
    put = begun(2, "SHADOWING", {"source": "task_api"}, None)
    assert assessment(put, ours) == NO_ASSESSMENT
