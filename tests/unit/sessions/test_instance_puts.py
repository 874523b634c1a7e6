from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.events.ndjson import decode_line
from etude.sessions.errors import InstancePartUnusableError, TooManyLinesError
from etude.sessions.instance_puts import InstancePut, batch_of, said, settle
from etude.sessions.turns import About, Folded, Received, fold

ABOUT = About(session_id="s1", device_id="toy-1", learner_id=None, started_ms=0)


def put(**fields: Any) -> InstancePut:
    return msgspec.convert(
        {"app_id": "a", "task_id": "t", "started_at": 1000} | fields, InstancePut
    )


class Server:
    """What a server does with puts, without one: events once each, in order of receipt."""

    def __init__(self) -> None:
        self.lines: dict[str, bytes] = {}

    def folded(self) -> Folded | None:
        return fold(
            ABOUT,
            [
                Received(event=decode_line(line), receipt=receipt, received_ms=0)
                for receipt, line in enumerate(self.lines.values(), 1)
            ],
        )

    def store(self, sent: InstancePut) -> int:
        """Store a put; return how many events were new."""
        stored = self.folded()
        told = said("s1", sent, stored)
        known = {one for each in told for one in each.events} & self.lines.keys()
        before = len(self.lines)
        for event in batch_of("s1", settle("s1", told, stored, known)).events:
            held = self.lines.setdefault(event.columns.event_id, event.line)
            assert held == event.line  # an id never stands for two contents
        return len(self.lines) - before


METRICS = st.lists(
    st.fixed_dictionaries(
        {"method": st.sampled_from(["m_v1", "n_v1"]), "value": st.none() | st.sampled_from([0, 1])}
    ),
    max_size=2,
    unique_by=lambda each: each["method"],
)
PUTS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["SHADOWING", "INLINE"]),
        "status": st.sampled_from(["running", "completed", "cancelled"]),
        "events": st.lists(st.sampled_from([{"x": 1}, {"x": 2}]), max_size=2),
        "turns": st.lists(
            st.fixed_dictionaries(
                {
                    "step_index": st.integers(0, 1),
                    "asr_text": st.none() | st.sampled_from(["x", "y"]),
                    "metrics": METRICS,
                }
            ),
            max_size=2,
            unique_by=lambda each: each["step_index"],
        ),
    }
)


@given(st.lists(PUTS, min_size=1, max_size=6))
def test_the_last_put_is_what_is_shown(history: list[dict[str, Any]]) -> None:
    """After any history: what the last one says, and what it does not say as it was before."""
    server = Server()
    texts: dict[int, str] = {}
    metrics: dict[int, Any] = {}
    for sent in history:
        server.store(put(**sent))
        for turn in sent["turns"]:
            if turn["asr_text"] is not None:
                texts[turn["step_index"]] = turn["asr_text"]
            if turn["metrics"]:
                metrics[turn["step_index"]] = turn["metrics"]
        folded = server.folded()
        assert folded is not None
        shown = folded.instance
        assert shown.mode == sent["mode"]
        assert sent["status"] in {"running", shown.status}
        for turn in shown.turns:
            assert turn.asr_text == texts.get(turn.step_index)
            assert msgspec.to_builtins(list(turn.metrics)) == metrics.get(turn.step_index, [])


@given(PUTS)
def test_a_put_again_makes_no_event(sent: dict[str, Any]) -> None:
    """Its events are the same to the byte, so that the store knows them."""
    server = Server()
    server.store(put(**sent))
    assert server.store(put(**sent)) == 0


def test_metrics_stay_out_of_the_recap_and_name_their_turn() -> None:
    """A metric is a server's event about its turn (`docs/rules.md 9, 24`)."""
    metric = {"method": "cer_v1", "value": 0.5, "unit": "ratio"}
    server = Server()
    server.store(put(turns=[{"step_index": 3, "metrics": [metric]}]))
    (event,) = [one for one in map(decode_line, server.lines.values()) if one.is_server_made]
    assert (event.event_type, event.signal) == ("audio_observation", "cer_v1")
    assert event.value == {"step_index": 3, "value": 0.5, "unit": "ratio"}
    assert event.correlation_id == "s1:3"


def test_what_cannot_be_an_event_is_named() -> None:
    """The error says which part of the put it is, never what it holds."""
    turns = [{"step_index": 0}, {"step_index": 1, "asr_text": "x" * 70_000}]
    with pytest.raises(InstancePartUnusableError) as caught:
        Server().store(put(turns=turns))
    assert caught.value.params == {"place": "turns[1]", "reason": "too_long"}
    with pytest.raises(InstancePartUnusableError) as caught:
        Server().store(put(events=[{"n": 2**60}]))
    assert caught.value.params["place"] == "events[0]"
    with pytest.raises(TooManyLinesError):
        Server().store(put(events=[{"n": n} for n in range(20_000)]))
