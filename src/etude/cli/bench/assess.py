"""`etude bench assess`: how many turns a second one core recognises, aligns and measures.

The recordings are spoken by the voice of `etude[speech]`: none of anybody's are in the product.
CPU seconds of the process count, not the wall: other work on the machine changes only the latter.
"""

import time
from typing import Any, Final

import numpy as np

from etude.assess.metrics import load_methods
from etude.assess.spoken_methods import own_engines
from etude.assess.turns import assess_turn
from etude.sessions.turns import Turn
from etude.speech.audio import floats, resampled
from etude.speech.engines import Engines, SpeechOptions

SENTENCES: Final = (
    "The cat sat on the warm stone wall.",
    "She sells sea shells by the sea shore.",
    "We walked along the river until the sun went down.",
    "Good morning, may I have a glass of water?",
    "My little brother likes to play with his red ball.",
    "There are seven days in a week.",
)
_RATE: Final = 16_000


def assess(*, turns: int = 30) -> dict[str, Any]:
    """Assess `turns` spoken sentences with every method that is installed."""
    voice = Engines(SpeechOptions()).synthesiser()
    spoken = []
    for sentence in SENTENCES:
        sound = voice.synthesise(sentence, language="en", rate=1.0).sound
        spoken.append((sentence, floats(resampled(sound, _RATE))))
    listener, methods = own_engines(), load_methods()
    listener.hear(SENTENCES[0], spoken[0][1], _RATE)  # loads the models
    hearing_s = measuring_s = sound_s = 0.0
    found = 0
    for number in range(turns):
        sentence, audio = spoken[number % len(spoken)]
        began = time.process_time()
        heard = listener.hear(sentence, audio, _RATE)
        middle = time.process_time()
        turn = Turn(step_index=number, expected_text=sentence)
        metrics = assess_turn(turn, methods, heard, audio, _RATE)
        measuring_s += time.process_time() - middle
        hearing_s += middle - began
        sound_s += len(audio) / _RATE
        found += sum(one.value is not None for one in metrics)
    whole_s = hearing_s + measuring_s
    return {
        "turns": turns,
        "metrics": found,
        "sound_s_mean": round(sound_s / turns, 2),
        "turns_per_s_per_core": round(turns / whole_s, 2),
        "cpu_s_per_turn": round(whole_s / turns, 4),
        "real_time_factor": round(whole_s / sound_s, 4),
        "baseline": "hearing alone (recogniser and aligner)",
        "baseline_cpu_s_per_turn": round(hearing_s / turns, 4),
        "ratio": round(whole_s / hearing_s, 3),
        "numpy": np.__version__,
    }
