"""`etude bench recap`: from the lines of a journal to the recap, as the device does it.

The baseline is the plain JSON decoding of the same lines, which no implementation can save.
"""

import json
from typing import Any, Final

from etude.cli.bench.frame import quantile
from etude.cli.bench.timing import Times
from etude.events.ndjson import decode_line
from etude.rubric.recap import recap as make_recap
from etude.testing.builders import lines, session

_WARM_UP_RUNS: Final = 20


def recap(*, events: int = 200, runs: int = 500) -> dict[str, Any]:
    """Measure decoding and recap of `events` lines, `runs` times, alternating with the baseline."""
    journal = lines(session(events))
    ours, plain = Times(), Times()
    for run in range(_WARM_UP_RUNS + runs):
        ours.add(lambda: _recap(journal), counts=run >= _WARM_UP_RUNS)
        plain.add(lambda: _plain(journal), counts=run >= _WARM_UP_RUNS)
    return {
        "events": events,
        "runs": runs,
        **ours.figures(""),
        "baseline": "json.loads of the same lines",
        **plain.figures("baseline_"),
        "ratio": round(quantile(sorted(ours.cpu_s), 0.5) / quantile(sorted(plain.cpu_s), 0.5), 2),
    }


def _recap(journal: list[bytes]) -> object:
    return make_recap(map(decode_line, journal))


def _plain(journal: list[bytes]) -> object:
    return [json.loads(line) for line in journal]
