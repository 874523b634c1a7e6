"""The apps of an installation: those that ship, and those an operator drops into a folder.

An operator's app takes the place of a shipped one of the same id, and its phrases win over those of
the others: who writes a file means it.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import msgspec

from etude.documents import DocumentInvalidError
from etude.documents.errors import DocumentTwiceError
from etude.practice.app_files import read_app_file
from etude.practice.errors import TaskUnknownError
from etude.practice.phrases import Phrases
from etude.practice.tasks import App, Task

__all__ = ["App", "Apps", "Task", "installed_apps", "load_apps", "shipped_apps"]

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


class Apps(msgspec.Struct, frozen=True):
    """Every app by its id; where two tasks answer to a phrase, the first app's is meant."""

    by_id: Mapping[str, App]

    def __iter__(self) -> Iterator[Task]:
        """Every task, apps in their order."""
        for app in self.by_id.values():
            yield from app.tasks.values()

    def task(self, app_id: str, task_id: str) -> Task:
        """Return a task, or raise `TaskUnknownError`."""
        app = self.by_id.get(app_id)
        if app is None or task_id not in app.tasks:
            raise TaskUnknownError(app_id=app_id, task_id=task_id)
        return app.tasks[task_id]

    def named(self, name: str, arguments: tuple[str, ...]) -> tuple[Task, tuple[str, ...]] | None:
        """Return what `[app_task]name|…` means, and the arguments that are left.

        The name is an app's (the task follows), a task's, or an entry phrase.
        """
        if name in self.by_id and arguments and arguments[0] in self.by_id[name].tasks:
            return self.by_id[name].tasks[arguments[0]], arguments[1:]
        for task in self:
            if task.task_id == name:
                return task, arguments
        task_said = self.entered(name)
        return (task_said, arguments) if task_said else None

    def entered(self, said: str) -> Task | None:
        """Return the task that somebody starts by saying `said`, None if no task."""
        return next((task for task in self if said in Phrases(task.entry_phrases)), None)

    def asks_for_assigned(self, said: str) -> bool:
        """Whether somebody who says `said` means what was assigned, whichever task it is."""
        return any(said in Phrases(app.assignment_phrases) for app in self.by_id.values())


def load_apps(folders: Iterable[Path]) -> Apps:
    """Read every app file (`*.yaml`, `*.json`) of `folders`; the apps in the order of their ids.

    Raises:
        DocumentInvalidError: a file cannot be used, or declares an app again; the parts name every
            mistake with its line.
        AppFileUnreadableError: a file cannot be read.
    """
    found: dict[str, App] = {}
    for folder in folders:
        for file in sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES):
            for line, app in read_app_file(file):
                if app.app_id in found:
                    part = DocumentTwiceError(
                        file=str(file), line=line, path="app_id", name=app.app_id
                    )
                    raise DocumentInvalidError(part, file=str(file), mistakes=1)
                found[app.app_id] = app
    return Apps(dict(sorted(found.items())))


def installed_apps(own: Path) -> Apps:
    """Read the apps of the folder `own`, if it is there, and the shipped ones they do not replace.

    Raises:
        DocumentInvalidError, AppFileUnreadableError: see `load_apps`.
    """
    shipped = shipped_apps()
    if not own.is_dir():
        return shipped
    mine = load_apps([own]).by_id
    return Apps({**mine, **{name: app for name, app in shipped.by_id.items() if name not in mine}})


def shipped_apps() -> Apps:
    """Read the apps of the package."""
    with as_file(files("etude.practice").joinpath("shipped")) as folder:
        return load_apps([folder])
