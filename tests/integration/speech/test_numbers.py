"""Same sound, same engine → same numbers: live or swept, alone or under load, in any process."""

import random

from etude.speech.audio import Pcm
from etude.speech.engines import Engines, SpeechOptions
from etude.speech.pool import Lane, PoolLimits, SpeechPool

PATIENT = PoolLimits(request_s=300.0)
LONG_S = 200


def measured(pool: SpeechPool, work: list[tuple[str, Pcm]], lane: Lane) -> list[object]:
    futures = [
        (
            pool.recognise(sound, language="en", expected_text=text, lane=lane, wait_s=LONG_S),
            pool.align(sound, text, language="en", lane=lane, wait_s=LONG_S),
        )
        for text, sound in work
    ]
    return [(heard.result(LONG_S), found.result(LONG_S)) for heard, found in futures]


def test_numbers_are_the_same_to_the_bit(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """One process and one request at a time, against two that are kept busy in another order."""
    assert engines
    work = list(spoken.items())
    with SpeechPool(SpeechOptions(), limits=PATIENT) as pool:
        alone = [one for item in work for one in measured(pool, [item], Lane.LIVE)]
    mixed = work * 4
    random.Random(1).shuffle(mixed)
    with SpeechPool(SpeechOptions(), processes=2, limits=PATIENT) as pool:
        loaded = measured(pool, mixed, Lane.SWEEP)
    wanted = dict(zip(spoken, alone, strict=True))
    assert all(one == wanted[text] for (text, _), one in zip(mixed, loaded, strict=True))
