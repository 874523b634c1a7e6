"""What the demo does with a voice and with what engines measure, without an engine."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from etude.assess.spoken_methods import PRONUNCIATION
from etude.authoring.samples import recordings
from etude.cli import demo_report, demo_speech
from etude.cli.demo_speech import MEASURED, Way, course_sounds, turns_when_measured, voices_of
from etude.cli.errors import DemoBrokenError
from etude.net import HttpClient, Reply
from etude.speech.engines import SpeechOptions
from etude.testing.learners_acting import Part
from etude.testing.speaking import SpokenVoices
from etude.testing.speech_engines import FaultyEngines

SAMPLE = "everyday-english.txt"


@pytest.fixture
def way() -> Way:
    return Way(voice=FaultyEngines(SpeechOptions()))


def test_the_voice_reads_every_sentence_that_has_a_recording(way: Way) -> None:
    """Under the same names, and none of it is what ships."""
    shipped, spoken = recordings(SAMPLE), course_sounds(SAMPLE, way)
    assert course_sounds(SAMPLE, Way()) == shipped
    assert spoken.keys() == shipped.keys()
    assert not set(spoken.values()) & set(shipped.values())


def test_a_learner_speaks_only_the_language_of_the_voice(way: Way) -> None:
    """English is spoken; Chinese is hummed, and so is everything without a voice."""
    parts = [Part(name="01.mp3", text="Good morning.", lasts_ms=900)]
    assert isinstance(voices_of(parts, "en", way), SpokenVoices)
    assert not isinstance(voices_of(parts, "zh", way), SpokenVoices)
    assert not isinstance(voices_of(parts, "en", Way()), SpokenVoices)


def turn(**values: float | None) -> Mapping[str, Any]:
    metrics = [{"method": method, "value": value} for method, value in values.items()]
    return {"step_index": 0, "asr_text": "hello", "metrics": metrics}


def test_turns_are_waited_for_until_the_engines_are_done_with_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A turn without a number (it is Chinese) is done as well; progress is told once a change."""
    monkeypatch.setattr(demo_speech, "_LOOK_S", 0)
    whole = turn(**dict.fromkeys(MEASURED.values(), 0.5))
    without = turn(**{PRONUNCIATION: None})
    looks = iter([[turn(), turn()], [whole, turn()], [whole, turn()], [whole, without]])
    assert turns_when_measured(lambda: list(next(looks))) == [whole, without]
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said] == ["0", "1", "2"]


@pytest.mark.parametrize("method", MEASURED.values())
def test_a_method_that_measured_nothing_is_a_defect(method: str) -> None:
    """The demo promises numbers: it does not end well without."""
    found = dict.fromkeys(MEASURED.values(), 0.5) | {method: None}
    with pytest.raises(DemoBrokenError) as caught:
        turns_when_measured(lambda: [turn(**found)])
    assert caught.value.params == {"what": method}


class Web(HttpClient):
    """Answers from a list."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self._answers: Iterator[Mapping[str, Any]] = iter(answers)

    def send(self, *_: Any, **__: Any) -> Reply:
        answer = dict(next(self._answers))
        status = answer.pop("status", 200)
        return Reply(status=status, headers={}, body=msgspec.json.encode(answer))


def report(revision: int, events: int) -> Mapping[str, Any]:
    return {"revision": revision, "inputs": {"event_count": events}}


def test_a_whole_report_is_one_that_stands_on_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revision from before the last metrics is passed over, if that is asked for."""
    monkeypatch.setattr(demo_report, "_LOOK_S", 0)
    session = {"events": 9}
    answers = ({"status": 202}, report(1, 5), session, report(2, 9), session)
    found = demo_report.report_when_made(Web(*answers), "/s", whole=True)
    assert found["revision"] == 2
    assert demo_report.report_when_made(Web(*answers), "/s")["revision"] == 1
