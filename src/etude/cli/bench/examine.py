"""`etude bench examine`: from the stored lines of a session to the bytes of its report.

The baseline is the plain JSON decoding of the same lines, which no implementation can save.
"""

import json
from typing import Any, Final

from etude.cli.bench.frame import quantile
from etude.cli.bench.timing import Times
from etude.clock import RandomIds, SystemClock
from etude.events.ndjson import decode_line
from etude.examiner.examining import make_report
from etude.examiner.report import report_bytes
from etude.rubric.library import RubricLibrary
from etude.testing.builders import lines, session

_WARM_UP_RUNS: Final = 5


def examine(*, events: int = 200, runs: int = 200) -> dict[str, Any]:
    """Measure decoding, scoring, words and digests of `events` lines, `runs` times."""
    stored = lines(session(events))
    rubric = RubricLibrary.load().get("violin-basic")
    clock, ids = SystemClock(), RandomIds()

    def ours() -> object:
        decoded = map(decode_line, stored)
        return report_bytes(make_report(decoded, rubric, locale="en", clock=clock, ids=ids))

    reports, plain = Times(), Times()
    for run in range(_WARM_UP_RUNS + runs):
        reports.add(ours, counts=run >= _WARM_UP_RUNS)
        plain.add(lambda: [json.loads(line) for line in stored], counts=run >= _WARM_UP_RUNS)
    return {
        "events": events,
        "runs": runs,
        **reports.figures("", (50, 95, 99)),
        "baseline": "json.loads of the same lines",
        **plain.figures("baseline_"),
        "ratio": round(
            quantile(sorted(reports.cpu_s), 0.5) / quantile(sorted(plain.cpu_s), 0.5), 2
        ),
    }
