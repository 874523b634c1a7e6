"""The protocol's own example lines, byte for byte, for tests, the demonstration and documentation.

`violin-3min.jsonl` is a practice of three minutes (its line `e008` has two `value` keys, on
purpose), `phase-timeout.jsonl` one question after a phase that took too long. `triples.jsonl` is
printed without ids and with `"ts": "..."`; `import_triple` completes it.

`sessions/` holds whole sessions of our own as they are stored, what the server added at the end:
for each rubric that ships a strong, a weak and a mostly unobserved one (`RUBRIC_SESSIONS`).
"""

import json
from importlib.resources import files
from typing import Final, Literal

Sample = Literal["violin-3min", "phase-timeout", "triples"]

TRIPLE_SESSION: Final = "s-triple-1"

_RUBRICS: Final = ("cpr-bls", "follow-read-en", "follow-read-zh", "osce-handwash", "violin-basic")
RUBRIC_SESSIONS: Final = tuple(
    f"{rubric}-{kind}" for rubric in _RUBRICS for kind in ("strong", "weak", "unobserved")
)
"""Names of the sessions in `sessions/`."""


def read_sample(name: Sample) -> bytes:
    """Return a sample file as it stands."""
    return files(__name__).joinpath(f"{name}.jsonl").read_bytes()


def sample_lines(name: Sample) -> list[bytes]:
    """Return the lines of a sample, without line ends."""
    return read_sample(name).splitlines()


def session_lines(name: str) -> list[bytes]:
    """Return the lines of one of `RUBRIC_SESSIONS`, without line ends."""
    return files(__name__).joinpath(f"sessions/{name}.jsonl").read_bytes().splitlines()


def import_triple(lines: list[bytes], session_id: str = TRIPLE_SESSION) -> list[bytes]:
    """Return printed triple lines as events (`docs/rules.md 1`).

    Adds `event_id`, `session_id` and a `correlation_id` that the lines share; `ts` counts up by a
    second. Everything else stays as printed.
    """
    return [
        json.dumps(
            {"event_id": f"e-triple-{number}", "session_id": session_id}
            | json.loads(line)
            | {"ts": float(number), "correlation_id": "c-triple-1"},
            ensure_ascii=False,
        ).encode()
        for number, line in enumerate(lines, 1)
    ]
