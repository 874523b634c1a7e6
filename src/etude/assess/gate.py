"""Was this sentence read at all? Silence, noise and another sentence get no number.

A text that is not found in the sound settles it. Where the aligner finds a path all the same, seven
measures decide together; how much each counts is learnt from recordings with a wrong text.
"""

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np

from etude.assess.listening import Heard
from etude.assess.regression import Floats

FEATURES: Final = (
    "similarity",
    "words_found",
    "score",
    "z",
    "expected_log_p",
    "expected_p",
    "ratio",
)
NO_SPEECH_FROM: Final = 0.6
"""Whisper's own probability that nobody speaks, from which that is believed."""
SILENCE_DB: Final = -60.0
_UNLIKE: Final = 0.2
"""Where no word of the text was heard and the texts are less alike, no path means anything.

So it is in loud talk of others: the aligner finds a path in any babble. Of 1,320 rightly read
sentences seven are as unlike.
"""
_LOST: Final = 0.02
"""The share of rightly read sentences that may be taken for others."""
_RIDGE: Final = 1e-3


def fit_gate(right: Floats, wrong: Floats) -> dict[str, float]:
    """Learn a linear discriminant between right and wrong texts; rows of `FEATURES`."""
    right, wrong = (rows[np.isfinite(rows).all(axis=1)] for rows in (right, wrong))
    count = len(FEATURES)
    if len(wrong) <= count or len(right) <= count:
        return {}
    spread = np.cov(right.T) + np.cov(wrong.T) + _RIDGE * np.eye(count)
    weights = np.linalg.solve(spread, right.mean(axis=0) - wrong.mean(axis=0))
    values = right @ weights
    threshold = float(np.quantile(values, _LOST))
    return {
        **{name: round(float(one), 6) for name, one in zip(FEATURES, weights, strict=True)},
        "threshold": round(threshold, 6),
        "wrong_let_through": round(float((wrong @ weights >= threshold).mean()), 4),
        "wrong_aligned": len(wrong),
    }


def off_task(
    heard: Heard, measures: Mapping[str, float], gate: Mapping[str, float], level_db: float
) -> Literal["off_task", "no_speech"] | None:
    """Say why a turn gets no number; None = the sentence was read."""
    recognised = heard.recognised
    probability = None if recognised is None else recognised.no_speech_probability
    unlikely = probability is not None and probability >= NO_SPEECH_FROM
    if level_db < SILENCE_DB:
        return "no_speech"
    if heard.alignment is None:
        empty = recognised is not None and not recognised.text
        return "no_speech" if unlikely or empty else "off_task"
    nothing = not measures.get("words_found", 1.0)
    if nothing and measures.get("similarity", 1.0) < _UNLIKE:
        return "no_speech" if unlikely else "off_task"
    if not gate:
        return None
    value = sum(gate[name] * measures.get(name, 0.0) for name in FEATURES)
    if value >= gate["threshold"]:
        return None
    return "no_speech" if unlikely else "off_task"
