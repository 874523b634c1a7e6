"""Rooms full of toys for the tests of this folder."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from etude.testing.nursery import Nursery
from etude.testing.playroom import Playroom

MakeRoom = Callable[..., Playroom]


@pytest.fixture
def make_room(
    tmp_path: Path, nursery: Nursery, sqlite_copy: Callable[[Path], str]
) -> Iterator[MakeRoom]:
    """What makes a room (`toys`, `steps`), on SQLite unless it is given a `database_url`."""
    with ExitStack() as rooms:

        def make(*, toys: int, steps: int, database_url: str = "") -> Playroom:
            data = tmp_path / "data"
            data.mkdir()
            url = database_url or sqlite_copy(data)
            room = Playroom(tmp_path, url, nursery, toys=toys, steps=steps)
            return rooms.enter_context(room)

        yield make
