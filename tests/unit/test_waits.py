"""No wait of the product loses the order to stop."""

from pathlib import Path

import etude

SOURCE = Path(etude.__file__).parent


def test_nothing_waits_by_wait_for() -> None:
    """Before Python 3.12 `asyncio.wait_for` loses a cancellation that comes with the result.

    Whoever cancelled then waits for the natural end, of a loop for ever: `asyncio.timeout` instead.
    """
    product = (path for path in SOURCE.rglob("*.py") if "testing" not in path.parts)
    found = [str(path) for path in product if "asyncio.wait_for(" in path.read_text()]
    assert found == []
