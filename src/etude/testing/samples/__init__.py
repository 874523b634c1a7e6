"""The protocol's own example lines, byte for byte, for tests, the demonstration and documentation.

`violin-3min.jsonl` is a practice of three minutes (its line `e008` has two `value` keys, on
purpose), `phase-timeout.jsonl` one question after a phase that took too long. `triples.jsonl` is
printed without ids and with `"ts": "..."`; `import_triple` completes it.
"""

import json
from importlib.resources import files
from typing import Final, Literal

Sample = Literal["violin-3min", "phase-timeout", "triples"]

TRIPLE_SESSION: Final = "s-triple-1"


def read_sample(name: Sample) -> bytes:
    """Return a sample file as it stands."""
    return files(__name__).joinpath(f"{name}.jsonl").read_bytes()


def sample_lines(name: Sample) -> list[bytes]:
    """Return the lines of a sample, without line ends."""
    return read_sample(name).splitlines()


def import_triple(lines: list[bytes], session_id: str = TRIPLE_SESSION) -> list[bytes]:
    """Return printed triple lines as events (`rulings.md` 1).

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
