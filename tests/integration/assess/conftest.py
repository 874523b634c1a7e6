"""A school whose turns are assessed, and a sound."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from etude.sessions.ingest import Ingest
from etude.store import Blobs, Database
from etude.testing.assessing import assessing_projectors
from etude.testing.school import School

RATE = 16_000


@pytest.fixture
def school(database: Database, run: Any) -> School:
    made = School(database, run)
    run(made.furnish())
    made.ingest = Ingest(database, made.clock, projectors=assessing_projectors(made))
    return made


@pytest.fixture
def blobs(school: School, tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs", school.clock)


@pytest.fixture
def sound(tmp_path: Path) -> bytes:
    """Two seconds of a tone that sounds like nobody."""
    times = np.arange(2 * RATE) / RATE
    path = tmp_path / "sound.ogg"
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * 220 * times), RATE, format="OGG", subtype="OPUS")
    return path.read_bytes()
