"""What a scenario expects, compared with what was seen. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from etude.testing.fake_device import FakeDevice, Seen
from etude.testing.scenarios import Expected, Never, Scenario

VERDICT: Final = re.compile(
    r"\b(?:passed|graded?|good|bad|well done|retry\w*|scores?|verdict|threshold|correct|wrong)\b"
    r"|得分|评分|分数|正确|错误|真棒|不对",
    re.IGNORECASE,
)
"""What must not be on the wire or in a record while assessment is deferred (`docs/rules.md 19`)."""

GREETING: Final = "greeting"

Event = Mapping[str, Any]
Sessions = Sequence[Sequence[Event]]


class Evidence:
    """All that was seen of one run."""

    def __init__(
        self, scenario: Scenario, device: FakeDevice, texts: Sequence[str], sessions: Sessions
    ) -> None:
        """Gather it."""
        self.scenario = scenario
        self.device = device
        self.texts = texts
        self.sessions = sessions

    def seen(self, what: str) -> list[Seen]:
        """Return the entries of one kind."""
        return [one for one in self.device.timeline if one.what == what]


def find_problems(
    scenario: Scenario,
    device: FakeDevice,
    texts: Sequence[str],
    sessions: Sessions,
    start_s: float,
) -> Iterator[str]:
    """Yield every difference, in words."""
    evidence = Evidence(scenario, device, texts, sessions)
    yield from _in_order(scenario.expect, device.timeline, start_s)
    for never in scenario.must_not:
        for found in _NEVER[never](evidence):
            yield f"must not: {never}: {found}"
    yield from _recorded(scenario, sessions)


def _in_order(
    expected: Sequence[Expected], timeline: Sequence[Seen], start_s: float
) -> Iterator[str]:
    place, before_s = 0, start_s
    for one in expected:
        found = next(
            (
                number
                for number in range(place, len(timeline))
                if timeline[number].at_s >= start_s and _name(timeline[number]) == one.see
            ),
            None,
        )
        if found is None:
            yield f"not seen: {one.see}"
            return
        passed_ms = round((timeline[found].at_s - before_s) * 1000)
        low, high = one.within_ms
        if not low <= passed_ms <= high:
            yield f"{one.see}: after {passed_ms} ms, not within {low} to {high}"
        place, before_s = found + 1, timeline[found].at_s


def _recorded(scenario: Scenario, sessions: Sessions) -> Iterator[str]:
    wanted = scenario.record
    if len(sessions) != wanted.sessions:
        yield f"{len(sessions)} sessions recorded, not {wanted.sessions}"
    if not sessions:
        return
    turns = [event["value"] for event in sessions[0] if event["event_type"] == "signal_observation"]
    turns.sort(key=lambda value: value["step_index"])
    ends = [event["value"] for event in sessions[0] if event["event_type"] == "session_end"]
    facts = {
        "end": ([end.get("end_reason") for end in ends], [wanted.end]),
        "heard": ([turn["heard"] for turn in turns], list(wanted.heard or ())),
        "said": ([turn["asr_text"] for turn in turns], list(wanted.said or ())),
    }
    for name, (found, hoped) in facts.items():
        if getattr(wanted, name) is not None and found != hoped:
            yield f"recorded {name}: {found}, not {hoped}"


def _clip_twice(evidence: Evidence) -> Iterator[str]:
    names = [one.detail for one in evidence.seen("clip")]
    yield from sorted({name for name in names if names.count(name) > 1 and name != GREETING})


def _clip_missing(evidence: Evidence) -> Iterator[str]:
    names = {one.detail for one in evidence.seen("clip")}
    yield from (part.name for part in evidence.scenario.parts() if part.name not in names)


def verdicts(texts: Iterable[str], own: Iterable[str]) -> Iterator[str]:
    """Yield what sounds like a verdict in texts sent to a device, the lesson's `own` apart."""
    sentences = sorted(own, key=len, reverse=True)
    for text in texts:
        rest = text
        for sentence in sentences:
            rest = rest.replace(sentence, "")
        if found := VERDICT.search(rest):
            yield f"{found.group()} in {text}"


def _verdict(evidence: Evidence) -> Iterator[str]:
    yield from verdicts(evidence.texts, {part.text for part in evidence.scenario.parts()})
    for event in (event for session in evidence.sessions for event in session):
        for key in _keys(event):
            if VERDICT.search(key.replace("_", " ")):
                yield f"{key} in {event['event_type']}"


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _keys(inner)


def _greetings(evidence: Evidence) -> list[str]:
    return [one.detail for one in evidence.seen("clip") if one.detail == GREETING]


def _greeting(evidence: Evidence) -> Iterator[str]:
    yield from _greetings(evidence)


def _greeting_twice(evidence: Evidence) -> Iterator[str]:
    yield from _greetings(evidence)[1:]


def _connection_lost(evidence: Evidence) -> Iterator[str]:
    over = evidence.seen("closed") + evidence.seen("lost")
    left = [one.at_s for one in evidence.device.timeline if one.what in {"left", "frozen"}]
    yield from (one.what for one in over if not any(at_s <= one.at_s for at_s in left))


def _turn_twice(evidence: Evidence) -> Iterator[str]:
    for session in evidence.sessions:
        steps = [
            event["value"]["step_index"]
            for event in session
            if event["event_type"] == "signal_observation"
        ]
        yield from (f"step {step}" for step in sorted(set(steps)) if steps.count(step) > 1)


def _frames_lost(evidence: Evidence) -> Iterator[str]:
    frames = evidence.device.frames
    for name in ("late", "overflowed", "unheard"):
        if count := getattr(frames, name):
            yield f"{count} {name}"


def _sound_after_end(evidence: Evidence) -> Iterator[str]:
    """Whatever plays after the last expected entry."""
    last = evidence.scenario.expect[-1].see
    names = [_name(one) for one in evidence.device.timeline]
    after = names[len(names) - names[::-1].index(last) :] if last in names else []
    yield from (name for name in after if name.startswith(("clip ", "tts_start")))


def _name(seen: Seen) -> str:
    return f"{seen.what} {seen.detail}".rstrip()


_NEVER: Final[Mapping[Never, Callable[[Evidence], Iterator[str]]]] = {
    "clip_twice": _clip_twice,
    "clip_missing": _clip_missing,
    "verdict": _verdict,
    "greeting": _greeting,
    "greeting_twice": _greeting_twice,
    "connection_lost": _connection_lost,
    "turn_twice": _turn_twice,
    "frames_lost": _frames_lost,
    "sound_after_end": _sound_after_end,
}
