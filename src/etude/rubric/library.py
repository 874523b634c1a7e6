"""The rubrics at hand: the ones that ship, and those that a school drops into its folder.

A rubric of the folder with the id and version of one that ships stands in its place. A file with
mistakes costs only itself: it is named in `problems`, the others are used.
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Self

import msgspec

from etude.documents import DocumentInvalidError
from etude.events.model import Event
from etude.rubric.errors import (
    RubricFileUnknownError,
    RubricFileUnreadableError,
    RubricUnknownError,
)
from etude.rubric.loading import load_rubric
from etude.rubric.model import Rubric

SUFFIXES: Final = (".yaml", ".yml")
_NUMBERS: Final = re.compile(r"\d+")

Problem = DocumentInvalidError | RubricFileUnreadableError


class RubricLibrary:
    """Rubrics by id and version. Read once; frozen."""

    def __init__(
        self,
        rubrics: Iterable[Rubric],
        problems: tuple[Problem, ...] = (),
    ) -> None:
        """Take rubrics; of two with one id and version the later one counts."""
        self._by_key = {rubric.key: rubric for rubric in rubrics}
        self.problems = problems

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """Read the shipped rubrics and, if it exists, `folder`."""
        problems: list[Problem] = []
        rubrics = list(_shipped())
        for file in _own_files(folder, problems):
            try:
                rubrics.append(read_rubric(file))
            except (DocumentInvalidError, RubricFileUnreadableError) as error:
                problems.append(error)
            except RubricFileUnknownError:  # taken away in between
                continue
        return cls(rubrics, tuple(problems))

    @property
    def rubrics(self) -> tuple[Rubric, ...]:
        """Every rubric, by id, oldest version first."""
        return tuple(sorted(self._by_key.values(), key=_age))

    def get(self, name: str) -> Rubric:
        """Return `id@version`, or the newest version of an id.

        Raises:
            RubricUnknownError: there is none.
        """
        found = self._by_key.get(name)
        if found is None:
            found = self._newest(one for one in self._by_key.values() if one.id == name)
        if found is None:
            raise RubricUnknownError(rubric=name[:128])
        return found

    def of_session(self, start: Event | None) -> Rubric:
        """Return the rubric of a session from its `session_start` (`docs/rules.md 3`).

        `meta.rubric {id, version}` names it, with a `digest` exactly that one; a bare
        `rubric_version` is looked for among the rubrics that declare the session's instrument;
        without any version the newest of them.

        Raises:
            RubricUnknownError: nothing names one that is at hand.
        """
        value = start.value if start is not None and isinstance(start.value, dict) else {}
        meta = start.meta if start is not None and isinstance(start.meta, dict) else {}
        named = meta.get("rubric")
        if isinstance(named, dict) and isinstance(named.get("id"), str):
            version = named.get("version")
            found = self.get(f"{named['id']}@{version}" if version else named["id"])
            if rubric_pin(start) not in (None, rubric_digest(found)):
                raise RubricUnknownError(rubric=f"{found.key} {rubric_pin(start)}"[:128])
            return found
        instrument, version = value.get("instrument"), value.get("rubric_version")
        declared = self._newest(
            one
            for one in self._by_key.values()
            if instrument in one.instruments and version in (None, one.version)
        )
        if declared is None:
            raise RubricUnknownError(rubric=f"{instrument} {version or ''}".strip()[:128])
        return declared

    def _newest(self, rubrics: Iterable[Rubric]) -> Rubric | None:
        return max(rubrics, key=lambda one: (version_key(one.version), one.id), default=None)


@cache
def _shipped() -> tuple[Rubric, ...]:
    """Return the shipped rubrics, read once a process: it takes half a second of a core."""
    shipped = files("etude.rubric").joinpath("rubrics")
    return tuple(
        load_rubric(entry.read_text("utf-8"), entry.name)
        for entry in shipped.iterdir()
        if entry.name.endswith(SUFFIXES)
    )


def _own_files(folder: Path | None, problems: list[Problem]) -> list[Path]:
    """Return the rubric files of a school's folder, by name; there need not be one."""
    if folder is None:
        return []
    try:
        return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)
    except FileNotFoundError:
        return []
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problems.append(RubricFileUnreadableError(file=str(folder), reason=reason))
        return []


def read_rubric(file: Path) -> Rubric:
    """Read one file.

    Raises:
        RubricFileUnknownError: it is not there.
        RubricFileUnreadableError: it is no file that can be read, or no text in UTF-8.
        DocumentInvalidError: it has mistakes.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise RubricFileUnknownError(file=str(file)) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "UTF-8"
        raise RubricFileUnreadableError(file=str(file), reason=reason) from error
    return load_rubric(text, str(file))


def rubric_json(rubric: Rubric) -> bytes:
    """Return a rubric in one form: what a digest is made of, and kept.

    Unlike RFC 8785 it keeps the order of signals and dimensions: reports follow that order, and the
    first of equals gets the next step, so that it is part of what a rubric says.
    """
    return msgspec.json.encode(rubric)


def rubric_digest(rubric: Rubric) -> str:
    """Return the sha256 of `rubric_json`: comments and layout do not count."""
    return hashlib.sha256(rubric_json(rubric)).hexdigest()


def rubric_pin(start: Event | None) -> str | None:
    """Return the digest of the one rubric that a session is read by, None if it names none."""
    meta = start.meta if start is not None and isinstance(start.meta, dict) else {}
    named = meta.get("rubric")
    digest = named.get("digest") if isinstance(named, dict) else None
    return digest if isinstance(digest, str) else None


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are ordered by: `v1.10` is newer than `v1.9`."""
    return tuple(int(number) for number in _NUMBERS.findall(version))


def _age(rubric: Rubric) -> tuple[str, tuple[int, ...]]:
    return (rubric.id, version_key(rubric.version))
