"""Which text of a turn is compared with what was to be said."""

import numpy as np
import pytest

from etude.assess.listening import Heard
from etude.assess.metrics import load_methods
from etude.assess.turns import assess_turn
from etude.sessions.turns import Turn
from etude.speech.recognise import Recognised

SOUND = np.zeros(16_000, dtype=np.float32)


def heard(text: str) -> Heard:
    recognised = Recognised(text=text, language="en", engine="e/1", model="m/1")
    return Heard(samples=SOUND, recognised=recognised, alignment=None, aligned=False)


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
