"""The gates of publishing: every one is tried, every failure told.

They are listed in `docs/courseware.md §Publishing`. What a course is made of comes in as
`CourseSource`; who generates courses fills it in. The classrooms are looked at here, on disk, as
they are now.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from etude.classroom.digest import DIGEST_VERSION, semantic_hash, source_revision_hash
from etude.classroom.errors import ClassroomInvalidError
from etude.classroom.loading import MAX_BYTES, read_classroom
from etude.classroom.model import Classroom
from etude.courseware.errors import (
    ClassroomUnreadableError,
    ContinuityStaleError,
    ContinuityUnverifiedError,
    FreezeRefusedError,
    ModuleNotSucceededError,
    ModuleSetMismatchError,
    PublishRefusedError,
    SemanticDriftError,
    SourceDriftError,
)
from etude.courseware.findings import unreadable_findings
from etude.courseware.freezing import Frozen, freeze
from etude.courseware.source_files import SourceFile, hash_files, hashes_of, is_unchanged
from etude.errors import EtudeError

NO_MODULE: Final = -1


class ContinuityRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an earlier module was when a later one was generated."""

    module_index: int
    classroom_id: str
    semantic_hash: str


class ModuleSource(msgspec.Struct, frozen=True, kw_only=True):
    """A generated module as the course's record has it.

    Attributes:
        module_id: what stays the same however modules are ordered; the courseware's id.
        classroom_id: None = it has none.
        semantic_hash: as stored when it was generated or accepted; None = no digest.
        source_revision_hash: likewise.
        continuity: None = never noted; `()` for the first module.
    """

    module_id: str
    title: str
    description: str
    succeeded: bool
    classroom_id: str | None
    semantic_hash: str | None
    source_revision_hash: str | None
    digest_version: int | None
    continuity: tuple[ContinuityRef, ...] | None


class CourseSource(msgspec.Struct, frozen=True, kw_only=True):
    """A course that is to be published.

    Attributes:
        planned: ids of the modules in the framework, in order.
        modules: what was generated, in order.
    """

    course_id: str
    title: str
    planned: tuple[str, ...]
    modules: tuple[ModuleSource, ...]


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A module's classroom as it is on disk now."""

    classroom: Classroom
    folder: Path
    document: bytes
    files: Mapping[str, SourceFile]
    semantic_hash: str
    source_revision_hash: str

    def is_unchanged(self) -> bool:
        """Whether nothing of it was touched since it was looked at."""
        path = self.folder.with_name(f"{self.folder.name}.json")
        return path.read_bytes() == self.document and is_unchanged(self.folder, self.files)


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """A module that passed every gate."""

    source: ModuleSource
    looked: Looked
    frozen: Frozen


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of trying every gate: modules that passed, and failures by index of module."""

    passed: tuple[Passed, ...]
    failures: tuple[tuple[int, EtudeError], ...]


def check_course(course: CourseSource, classrooms: Path) -> Checked:
    """Try every gate on every module; blocks, call it in a thread.

    Args:
        course: what is to be published.
        classrooms: the folder of `etude.classroom.library`.
    """
    failures: list[tuple[int, EtudeError]] = list(_modules_fit(course))
    looked = [
        _looked(module, classrooms, index, failures) for index, module in enumerate(course.modules)
    ]
    passed = []
    for index, (module, found) in enumerate(zip(course.modules, looked, strict=True)):
        failures += ((index, one) for one in _drift(module, found, index))
        failures += ((index, one) for one in _continuity(module, looked, course.modules, index))
        if found is not None:
            frozen = _frozen(module, found, index, failures)
            if frozen is not None:
                passed.append(Passed(source=module, looked=found, frozen=frozen))
    return Checked(passed=tuple(passed), failures=tuple(failures))


def refused(failures: Sequence[tuple[int, EtudeError]]) -> PublishRefusedError:
    """Gather failures, by module and then by gate, each with `moduleIndex`.

    `earliestFailedIndex` is where to begin again; `NO_MODULE` stands for the course itself.
    """
    ordered = sorted(failures, key=lambda one: one[0])  # stable: gates stay in their order
    indexes = [index for index, _ in ordered if index != NO_MODULE]
    for index, error in ordered:
        if index != NO_MODULE:
            error.params.setdefault("moduleIndex", index)
    return PublishRefusedError(
        *(error for _, error in ordered),
        failures=len(ordered),
        earliestFailedIndex=min(indexes, default=NO_MODULE),
    )


def _modules_fit(course: CourseSource) -> Iterator[tuple[int, EtudeError]]:
    generated = tuple(module.module_id for module in course.modules)
    if generated != course.planned or not generated:
        error = ModuleSetMismatchError(planned=len(course.planned), found=len(generated))
        yield NO_MODULE, error


def _looked(
    module: ModuleSource, classrooms: Path, index: int, failures: list[tuple[int, EtudeError]]
) -> Looked | None:
    if not module.succeeded or module.classroom_id is None:
        failures.append((index, ModuleNotSucceededError(moduleIndex=index)))
        return None
    try:
        return look(classrooms, module.classroom_id)
    except ClassroomInvalidError as error:
        failures.append((index, ClassroomUnreadableError(moduleIndex=index, reason=error.code)))
        failures += ((index, one) for one in unreadable_findings(error))
    except EtudeError as error:
        failures.append((index, ClassroomUnreadableError(moduleIndex=index, reason=error.code)))
    except OSError as error:
        failures.append((index, _unreadable(error, index)))
    return None


def look(classrooms: Path, classroom_id: str) -> Looked:
    """Read a classroom and hash its files; raises as `read_classroom` and the system do."""
    folder = classrooms / classroom_id
    with (classrooms / f"{classroom_id}.json").open("rb") as file:
        document = file.read(MAX_BYTES + 1)
    classroom = read_classroom(document)
    files = hash_files(folder)
    return Looked(
        classroom=classroom,
        folder=folder,
        document=document,
        files=files,
        semantic_hash=semantic_hash(classroom),
        source_revision_hash=source_revision_hash(classroom, hashes_of(files)),
    )


def _drift(module: ModuleSource, found: Looked | None, index: int) -> Iterator[EtudeError]:
    if found is None:
        return
    if module.semantic_hash != found.semantic_hash or module.digest_version != DIGEST_VERSION:
        yield SemanticDriftError(moduleIndex=index)
    if module.source_revision_hash != found.source_revision_hash:
        yield SourceDriftError(moduleIndex=index)


def _continuity(
    module: ModuleSource,
    looked: Sequence[Looked | None],
    modules: Sequence[ModuleSource],
    index: int,
) -> Iterator[EtudeError]:
    refs = module.continuity
    if refs is None or [one.module_index for one in refs] != list(range(index)):
        yield ContinuityUnverifiedError(moduleIndex=index)
        return
    for earlier, ref in enumerate(refs):
        now = looked[earlier]
        if ref.classroom_id != modules[earlier].classroom_id:
            reason = "classroomId"
        elif now is None or ref.semantic_hash != now.semantic_hash:
            reason = "semanticHash"
        else:
            continue
        yield ContinuityStaleError(moduleIndex=index, earlierIndex=earlier, reason=reason)


def _frozen(
    module: ModuleSource, found: Looked, index: int, failures: list[tuple[int, EtudeError]]
) -> Frozen | None:
    try:
        return freeze(found.classroom, found.files, module.module_id)
    except FreezeRefusedError as error:
        failures += ((index, one) for one in error.parts)
    except EtudeError as error:
        failures.append((index, error))
    except OSError as error:  # a file that went while it was frozen
        failures.append((index, _unreadable(error, index)))
    return None


def _unreadable(error: OSError, index: int) -> ClassroomUnreadableError:
    reason = error.strerror or type(error).__name__
    return ClassroomUnreadableError(moduleIndex=index, reason=reason)
