"""Classrooms on the disk: whole or not at all, replaced only by who has seen them."""

import contextlib
import hashlib
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from etude.classroom.errors import (
    ClassroomChangedError,
    ClassroomExistsError,
    ClassroomFileTooLargeError,
    ClassroomFileUnknownError,
    ClassroomFolderError,
    ClassroomInvalidError,
    ClassroomUnknownError,
)
from etude.classroom.library import ClassroomLibrary
from etude.classroom.loading import read_classroom
from etude.classroom.model import Classroom
from etude.classroom.references import is_file, slots_of
from etude.files import Files, armed
from etude.testing.bad_disks import FullFiles
from etude.testing.lossy_files import LossyFiles, PowerCutError
from etude.testing.waiting import joined

CLASSROOM = read_classroom((Path(__file__).parent / "tides.json").read_bytes())
FILES = {slot.reference: b"x" for slot in slots_of(CLASSROOM) if is_file(slot.reference)}
LATER = datetime.now(UTC) + timedelta(days=2)
CRASH_POINTS = (
    "classroom.file.written",
    "classroom.file.renamed",
    "classroom.draft.synced",
    "classroom.draft.placed",
    "files.replace.written",
    "files.replace.renamed",
)


def kept(library: ClassroomLibrary, classroom: Classroom = CLASSROOM, draft_of: str = "t") -> str:
    """Store the example with its files; return its revision."""
    with library.draft(classroom.id, draft_of) as draft:
        for reference, data in FILES.items():
            draft.put(reference, [data])
        return draft.commit(classroom).revision


def renamed(name: str) -> Classroom:
    stage = msgspec.structs.replace(CLASSROOM.stage, name=name)
    return msgspec.structs.replace(CLASSROOM, stage=stage)


def test_a_classroom_is_kept_with_its_files(tmp_path: Path) -> None:
    """What was committed is read back, its files with it; its revision is the one that was told."""
    library = ClassroomLibrary(tmp_path / "classrooms")
    revision = kept(library)
    assert library.ids() == ("demo_tides01",)
    assert library.read("demo_tides01") == CLASSROOM
    stored = library.stored("demo_tides01")
    assert (stored.classroom, stored.revision) == (CLASSROOM, revision)
    assert library.media_hashes("demo_tides01") == {
        reference: hashlib.sha256(data).hexdigest() for reference, data in FILES.items()
    }
    assert library.file("demo_tides01", "media/bulges.png").read_bytes() == b"x"


def test_what_is_not_committed_leaves_nothing(tmp_path: Path) -> None:
    """A draft that fails or is given up is removed with its files."""
    library = ClassroomLibrary(tmp_path)
    with library.draft("demo_tides01", "t") as draft:
        draft.put("media/bulges.png", [b"x"])
    with pytest.raises(ClassroomInvalidError), library.draft("demo_tides01", "u") as draft:
        draft.commit(CLASSROOM)
    assert list(tmp_path.iterdir()) == []


def test_a_reference_needs_its_file(tmp_path: Path) -> None:
    """A picture that was not put is a mistake at its place."""
    library = ClassroomLibrary(tmp_path)
    with library.draft("demo_tides01", "t") as draft:
        for reference in FILES.keys() - {"media/bulges.png"}:
            draft.put(reference, [b"x"])
        with pytest.raises(ClassroomInvalidError) as caught:
            draft.commit(CLASSROOM)
    (part,) = caught.value.parts
    assert part.params["path"] == "scenes[0].content.canvas.elements[1].src"


def test_a_draft_is_of_one_classroom(tmp_path: Path) -> None:
    """What was begun under one id is not committed under another."""
    library = ClassroomLibrary(tmp_path)
    with pytest.raises(ClassroomInvalidError), library.draft("other", "t") as draft:
        draft.commit(CLASSROOM)
    assert library.ids() == ()


def test_there_is_one_of_an_id(tmp_path: Path) -> None:
    """A second classroom of the same id is refused; the first stays."""
    library = ClassroomLibrary(tmp_path)
    kept(library)
    with pytest.raises(ClassroomExistsError):
        kept(library, renamed("Another"), "u")
    assert library.read("demo_tides01") == CLASSROOM


def test_only_who_has_seen_it_replaces_it(tmp_path: Path) -> None:
    """The first of two editors wins; the second is told; a changed file is a change as well."""
    library = ClassroomLibrary(tmp_path)
    first = kept(library)
    second = library.replace(renamed("Edited"), expected=first).revision
    with pytest.raises(ClassroomChangedError):
        library.replace(renamed("Too late"), expected=first)
    library.put_file("demo_tides01", "media/bulges.png", [b"other"])
    with pytest.raises(ClassroomChangedError):
        library.replace(renamed("Too late"), expected=second)
    assert library.read("demo_tides01").stage.name == "Edited"


def test_of_many_editors_at_once_one_wins(tmp_path: Path) -> None:
    """Editors in several threads, as in several processes, lose no edit unseen."""
    revision = kept(ClassroomLibrary(tmp_path))
    won: list[str] = []

    def edit(name: str) -> None:
        try:
            ClassroomLibrary(tmp_path).replace(renamed(name), expected=revision)
            won.append(name)
        except ClassroomChangedError:
            pass

    editors = [
        threading.Thread(target=edit, args=(f"Edit {index}",), daemon=True) for index in range(6)
    ]
    for editor in editors:
        editor.start()
    for editor in editors:
        joined(editor)
    assert [ClassroomLibrary(tmp_path).read("demo_tides01").stage.name] == won


@pytest.mark.parametrize(
    "reference",
    [
        "../x.png",
        "media/../x.png",
        "media/.x.png",
        "/etc/passwd",
        "media/x",
        "other/x.png",
        "media/",
    ],
)
def test_files_stay_inside(tmp_path: Path, reference: str) -> None:
    """No reference leads out of the classroom's two folders, neither in nor out."""
    library = ClassroomLibrary(tmp_path)
    kept(library)
    with pytest.raises(ClassroomFileUnknownError):
        library.put_file("demo_tides01", reference, [b"x"])
    with pytest.raises(ClassroomFileUnknownError):
        library.file("demo_tides01", reference)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link that somebody put there is no file of the classroom."""
    library = ClassroomLibrary(tmp_path / "classrooms")
    kept(library)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "classrooms/demo_tides01/media/link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(ClassroomFileUnknownError):
        library.file("demo_tides01", "media/link.png")
    assert "media/link.png" not in library.media_hashes("demo_tides01")


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 65, ".draft-x"])
def test_an_id_is_no_path(tmp_path: Path, name: str) -> None:
    """An id that could be a path is nobody's."""
    library = ClassroomLibrary(tmp_path)
    for ask in (library.read, library.stored, library.media_hashes, library.remove):
        with pytest.raises(ClassroomUnknownError):
            ask(name)


def test_a_file_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too much is refused while it comes, and nothing of it stays."""
    monkeypatch.setattr("etude.classroom.library.MAX_FILE_BYTES", 10)
    library = ClassroomLibrary(tmp_path)
    kept(library)
    with pytest.raises(ClassroomFileTooLargeError):
        library.put_file("demo_tides01", "media/new.png", [b"x" * 6, b"x" * 6])
    assert sorted(one.name for one in (tmp_path / "demo_tides01/media").iterdir()) == ["bulges.png"]


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    """A disk that takes nothing more is an error with a code; what was there stays."""
    revision = kept(ClassroomLibrary(tmp_path))
    full = ClassroomLibrary(tmp_path, FullFiles())
    with pytest.raises(ClassroomFolderError):
        full.put_file("demo_tides01", "media/new.png", [b"x" * 100])
    with pytest.raises(ClassroomFolderError):
        full.replace(renamed("Edited"), expected=revision)
    assert ClassroomLibrary(tmp_path).stored("demo_tides01").revision == revision


def edited(folder: Path, files: Files) -> None:
    """Make the example and edit it: everything that is written in a classroom's life."""
    library = ClassroomLibrary(folder, files)
    kept(library)
    revision = library.stored("demo_tides01").revision
    library.replace(renamed("Edited"), expected=revision)
    library.put_file("demo_tides01", "media/bulges.png", [b"other"])


def states(folder: Path) -> str:
    """Return the state that is there, made sure to be a whole one; afterwards it can be used."""
    library = ClassroomLibrary(folder)
    if not library.ids():
        library.sweep(LATER)
        kept(library, draft_of="again")
        return "none"
    stored = library.stored("demo_tides01")
    assert library.media_hashes("demo_tides01").keys() == FILES.keys()
    picture = library.file("demo_tides01", "media/bulges.png").read_bytes()
    library.sweep(LATER)
    assert sorted(one.name for one in folder.iterdir()) == ["demo_tides01", "demo_tides01.json"]
    assert library.stored("demo_tides01") == stored
    return f"{stored.classroom.stage.name}, {picture.decode()}"


def test_a_power_cut_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    """Cut before each operation of the disk: none, made, edited, never anything between."""
    (tmp_path / "whole").mkdir()
    whole = LossyFiles(tmp_path / "whole")
    edited(whole.root / "classrooms", whole)
    seen = set()
    for cut in range(len(whole.operations) + 1):
        live = tmp_path / f"live-{cut}"
        live.mkdir()
        disk = LossyFiles(live, cut_at=cut)
        with contextlib.suppress(PowerCutError):
            edited(live / "classrooms", disk)
        after = disk.survivors(tmp_path / f"after-{cut}", None if cut % 2 else cut)
        seen.add(states(after / "classrooms"))
    title = CLASSROOM.stage.name
    assert seen == {"none", f"{title}, x", "Edited, x", "Edited, other"}


@pytest.mark.parametrize("name", CRASH_POINTS)
def test_a_kill_leaves_the_old_state_or_the_new_one(tmp_path: Path, name: str) -> None:
    """Killed at each named point, every time it is reached."""
    reached = 0

    def stop(at: str) -> None:
        nonlocal reached
        reached += at == name
        if reached > survived:
            raise KeyboardInterrupt

    for survived in range(20):
        reached, folder = 0, tmp_path / f"{survived}"
        try:
            with armed(stop):
                edited(folder, Files())
        except KeyboardInterrupt:
            states(folder)
        else:
            assert survived > 0
            return
    pytest.fail("the point is reached without end")


def test_a_removal_is_whole_or_can_be_repeated(tmp_path: Path) -> None:
    """Killed between document and files, the classroom is gone; the sweep takes the files."""
    library = ClassroomLibrary(tmp_path)
    kept(library)

    def stop(reached: str) -> None:
        if reached == "classroom.removal.unlisted":
            raise KeyboardInterrupt

    with armed(stop), pytest.raises(KeyboardInterrupt):
        library.remove("demo_tides01")
    assert library.ids() == ()
    assert library.sweep(datetime.now(UTC)) == 1
    assert list(tmp_path.iterdir()) == []
    library.remove("demo_tides01")


def test_the_sweep_spares_what_is_in_use(tmp_path: Path) -> None:
    """A young draft and a classroom stay; what a killed upload left in it goes."""
    library = ClassroomLibrary(tmp_path)
    kept(library)
    waiting = tmp_path / "demo_tides01/media/.new.png.7.tmp"
    waiting.write_bytes(b"half")
    with library.draft("other", "t"):
        assert library.sweep(datetime.now(UTC)) == 0
        assert library.sweep(datetime.now(UTC) + timedelta(days=2)) == 1
    assert not waiting.exists()
    assert library.stored("demo_tides01").classroom == CLASSROOM
