"""A real broker, started for the tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.testing.brokers import Mosquitto, NoMosquitto


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker of the test's own, running."""
    if os.environ.get("ETUDE_TEST_SKIP_MOSQUITTO") == "1":
        pytest.skip("ETUDE_TEST_SKIP_MOSQUITTO=1")
    try:
        broker = Mosquitto(tmp_path)
    except NoMosquitto:
        pytest.fail(
            "no mosquitto: install it, or skip these tests knowingly with"
            " ETUDE_TEST_SKIP_MOSQUITTO=1"
        )
    with broker:
        yield broker
