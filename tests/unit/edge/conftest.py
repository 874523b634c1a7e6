from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from etude.edge.journal import Journal
from etude.edge.outbox import Outbox
from etude.edge.session_moves import Phases
from etude.edge.session_writer import SessionWriter
from etude.files import Files
from etude.net import HttpClient
from etude.testing.clocks import CountingIds, ManualClock
from etude.testing.fake_cloud import FakeCloud

OpenOutbox = Callable[..., Outbox]
OpenWriter = Callable[..., SessionWriter]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_writer(tmp_path: Path, clock: ManualClock) -> Iterator[OpenWriter]:
    """Open `s-1` in `tmp_path`; closed at the end unless the test did."""
    ids = CountingIds()
    with ExitStack() as opened:

        def open_one(phases: Phases | None = None, files: Files | None = None) -> SessionWriter:
            journal = Journal.open(tmp_path, "s-1", files=files)
            opened.callback(journal._release)
            return SessionWriter.open(journal, clock=clock, ids=ids, phases=phases)

        yield open_one


@pytest.fixture
def writer(open_writer: OpenWriter) -> SessionWriter:
    """A session that has begun."""
    begun = open_writer()
    begun.begin({"instrument": "violin", "piece": "twinkle_twinkle", "rubric_version": "v1.2"})
    return begun


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


@pytest.fixture
def open_outbox(tmp_path: Path, cloud: FakeCloud, clock: ManualClock) -> Iterator[OpenOutbox]:
    """Open an outbox on `tmp_path`; the one before is closed."""
    opened: list[Outbox] = []

    def open_one(root: Path = tmp_path, files: Files | None = None) -> Outbox:
        close_all()
        client = HttpClient("https://cloud.test", wire=cloud.wire())
        outbox = Outbox(root, client, clock=clock, files=files, chance=lambda: 0.0)
        opened.append(outbox)
        return outbox

    def close_all() -> None:
        while opened:
            opened.pop().close()

    yield open_one
    close_all()
