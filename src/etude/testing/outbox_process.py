"""An outbox in a process of its own, which a test can kill: `outbox_process ROOT URL`.

The token is `ETUDE_TOKEN`. It tries every session of the root once and ends.
"""

import os
import sys
from pathlib import Path
from typing import Final

from etude.clock import SystemClock
from etude.edge.outbox import Outbox
from etude.files import arm_from_environment
from etude.net import HttpClient

ENDED: Final = "outbox process ended"


def main() -> None:
    """Upload what is below the root; `ETUDE_CRASH_AT` names where to end before that."""
    arm_from_environment()
    root, url = sys.argv[1:]
    with (
        HttpClient(url, bearer=os.environ["ETUDE_TOKEN"]) as client,
        Outbox(Path(root), client, clock=SystemClock()) as outbox,
    ):
        outbox.trigger()
        outbox.run_due()
    sys.stderr.write(f"{ENDED}\n")  # whoever reads the log knows that it was not killed


if __name__ == "__main__":
    main()
