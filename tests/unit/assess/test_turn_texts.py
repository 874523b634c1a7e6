"""Which text of a turn is compared with what was to be said."""

import numpy as np
import pytest

from etude.assess.listening import Heard
from etude.assess.metrics import load_methods
from etude.assess.turns import assess_turn, why_unread
from etude.sessions.turns import Turn
from etude.speech.recognise import Recognised

SOUND = (0.2 * np.sin(np.arange(16_000) / 9)).astype(np.float32)


def heard(text: str, samples: np.ndarray = SOUND) -> Heard:
    recognised = Recognised(text=text, language="en", engine="e/1", model="m/1")
    return Heard(samples=samples, recognised=recognised, alignment=None, aligned=False)


@pytest.mark.parametrize("live", [None, "cat", "the cat", "another thing"])
def test_what_was_recognised_live_changes_no_number(live: str | None) -> None:
    """In time or late, whole or in part: where there is a recording, the whole of it is heard."""
    methods = {"text_similarity_v0": load_methods()["text_similarity_v0"]}
    turn = Turn(step_index=0, expected_text="the cat", asr_text=live)
    (found,) = assess_turn(turn, methods, heard("the cat"), SOUND, 16_000)
    assert found.value == 1.0


def test_without_engines_the_live_text_is_compared() -> None:
    """It is all there is."""
    methods = {"text_similarity_v0": load_methods()["text_similarity_v0"]}
    turn = Turn(step_index=0, expected_text="the cat", asr_text="the cat")
    (found,) = assess_turn(turn, methods, None, None, 0)
    assert found.value == 1.0


def test_beside_the_number_stands_who_heard_the_text() -> None:
    """Engine and model of the text are in the detail, whatever else is there."""
    methods = {name: load_methods()[name] for name in ("cer_v1", "completeness_v1")}
    turn = Turn(step_index=0, expected_text="the cat")
    for found in assess_turn(turn, methods, heard("the cat"), SOUND, 16_000):
        assert (found.detail["recogniser"], found.detail["model"]) == ("e/1", "m/1")


@pytest.mark.parametrize(
    ("text", "samples", "why"),
    [
        ("the cat", SOUND, None),
        ("", SOUND, "no_speech"),
        ("the cat", np.zeros(16_000, dtype=np.float32), "no_speech"),
    ],
)
@pytest.mark.parametrize("expected", [None, "\u6211\u559c\u6b22\u732b", "..."])
def test_where_no_text_can_be_looked_for_silence_is_still_told(
    expected: str | None, text: str, samples: np.ndarray, why: str | None
) -> None:
    """Nothing to be read, Chinese, no word at all: silence and an empty text are `no_speech`."""
    assert why_unread(expected, heard(text, samples)) == why


def test_of_what_was_not_read_no_method_says_a_number() -> None:
    """Text methods say why; what is about the recording is said all the same."""
    silence = np.zeros(16_000, dtype=np.float32)
    turn = Turn(step_index=0, expected_text="\u6211\u559c\u6b22\u732b")
    found = {
        one.method: one
        for one in assess_turn(turn, load_methods(), heard("you", silence), silence, 16_000)
    }
    for name in ("text_similarity_v0", "cer_v1", "wer_v1", "completeness_v1"):
        assert found[name].value is None
        assert found[name].detail["reason"] == "no_speech"
    assert found["input_quality_v1"].value is not None
