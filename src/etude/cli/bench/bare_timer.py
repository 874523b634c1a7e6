"""A timer and nothing else, for comparison: an idle process whose loop is called at fixed times.

`python -m etude.cli.bench.bare_timer SECONDS` prints, as a JSON list, by how many seconds each call
was late.
"""

import asyncio
import json
import sys
from typing import Final

INTERVAL_S: Final = 0.01


async def measure(lasts_s: float) -> list[float]:
    """Return the lateness of every call of the loop in `lasts_s`, in seconds."""
    loop = asyncio.get_running_loop()
    errors: list[float] = []
    done = loop.create_future()
    end_s = loop.time() + lasts_s

    def tick(due_s: float) -> None:
        now_s = loop.time()
        errors.append(now_s - due_s)
        following_s = max(due_s + INTERVAL_S, now_s)
        if following_s < end_s:
            loop.call_at(following_s, tick, following_s)
        else:
            done.set_result(None)

    first_s = loop.time() + INTERVAL_S
    loop.call_at(first_s, tick, first_s)
    await done
    return errors


if __name__ == "__main__":
    json.dump(asyncio.run(measure(float(sys.argv[1]))), sys.stdout)
