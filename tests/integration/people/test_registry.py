import importlib
import pkgutil
from pathlib import Path

import etude
from etude.authoring.classrooms.learner_data import classrooms_data
from etude.clock import SystemClock
from etude.examiner.learner_data import all_learner_data
from etude.people.learner_data import LearnerDataRegistry, tables_of_learners, uncovered_tables
from etude.practice.assignments.learner_data import assignments_data
from etude.store import Blobs, metadata


def every_table_is_known() -> None:
    """Import `tables` of every package that has it, so that no table is overlooked."""
    for package in pkgutil.walk_packages(etude.__path__, "etude."):
        if package.name.endswith(".tables"):
            importlib.import_module(package.name)


def everybody(folder: Path) -> LearnerDataRegistry:
    """Return the registry as web, worker and commands put it together."""
    clock = SystemClock()
    blobs = Blobs(folder, clock)
    return all_learner_data(
        clock, blobs, assignments_data(clock), classrooms_data(clock, blobs, folder / "classrooms")
    )


def test_every_table_with_a_path_to_a_learner_has_a_handler(tmp_path: Path) -> None:
    """Whoever adds a table that leads to a learner says how it is exported and erased."""
    every_table_is_known()
    registry = everybody(tmp_path)
    assert uncovered_tables(metadata, registry) == frozenset()


def test_the_tables_of_learners_are_really_found() -> None:
    """The search finds what is known to lead to a learner, through keys and columns."""
    every_table_is_known()
    assert tables_of_learners(metadata) >= {
        "learner",
        "device_holder",
        "token",
        "session",
        "session_event",
        "session_media",
        "session_quarantine",
        "assignment",
    }


def test_nothing_is_registered_that_is_not_there(tmp_path: Path) -> None:
    """Every registered table is one of the schema, and each belongs to one context."""
    every_table_is_known()
    registry = everybody(tmp_path)
    names = [table.name for data in registry for table in (*data.tables, *data.keys_only)]
    assert set(names) <= set(metadata.tables)
    assert len(names) == len(set(names))
