import errno
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.files import Files, armed, crash_point, replace_file
from etude.testing.lossy_files import LossyFiles, PowerCutError
from etude.testing.waiting import run_bounded


def real(_: Path) -> Files:
    return Files()


@pytest.fixture(params=[real, LossyFiles], ids=["Files", "LossyFiles"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """One contract, two implementations."""
    files: Files = request.param(tmp_path)
    return files


def test_an_append_file_grows_and_tells_its_size(disk: Files, tmp_path: Path) -> None:
    """What is appended is read back in order; the size is what was written."""
    file = disk.open_append(tmp_path / "log")
    file.write_all(b"one\n")
    file.write_all(b"two\n")
    file.sync()
    assert file.size() == 8
    file.close()
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_a_reopened_append_file_continues_at_its_end(disk: Files, tmp_path: Path) -> None:
    """Opening again never overwrites."""
    for line in (b"one\n", b"two\n"):
        file = disk.open_append(tmp_path / "log")
        file.write_all(line)
        file.close()
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_a_cut_file_continues_at_the_cut(disk: Files, tmp_path: Path) -> None:
    """After `truncate` the next write stands at the cut, without a hole."""
    file = disk.open_append(tmp_path / "log")
    file.write_all(b"one\ntw")
    file.truncate(4)
    file.write_all(b"two\n")
    file.close()
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_a_new_file_is_private_and_whole(disk: Files, tmp_path: Path) -> None:
    """`write_new` writes everything, readable by the owner alone."""
    disk.write_new(tmp_path / "key", b"secret")
    assert (tmp_path / "key").read_bytes() == b"secret"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_new_file_never_replaces_one(disk: Files, tmp_path: Path) -> None:
    """`write_new` over an existing file is refused and changes nothing."""
    disk.write_new(tmp_path / "key", b"first")
    with pytest.raises(FileExistsError):
        disk.write_new(tmp_path / "key", b"second")
    assert (tmp_path / "key").read_bytes() == b"first"


def test_folders_are_made_with_their_parents_and_twice_is_fine(disk: Files, tmp_path: Path) -> None:
    """`make_folder` makes every missing parent and accepts one that is there."""
    disk.make_folder(tmp_path / "a" / "b" / "c")
    disk.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_a_link_is_a_second_name_and_never_replaces(disk: Files, tmp_path: Path) -> None:
    """`link` gives one file two names; a taken name is refused."""
    disk.write_new(tmp_path / "a", b"a")
    disk.write_new(tmp_path / "b", b"b")
    disk.link(tmp_path / "a", tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == b"a"
    with pytest.raises(FileExistsError):
        disk.link(tmp_path / "a", tmp_path / "b")


def test_renaming_replaces_and_removing_what_is_absent_is_fine(disk: Files, tmp_path: Path) -> None:
    """`rename` moves over its target; `remove` of nothing does nothing."""
    disk.write_new(tmp_path / "a", b"a")
    disk.write_new(tmp_path / "b", b"b")
    disk.rename(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"a"
    disk.remove(tmp_path / "a")
    disk.remove(tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_file_moves_between_folders(disk: Files, tmp_path: Path) -> None:
    """`rename` works across folders of one file system."""
    disk.make_folder(tmp_path / "from")
    disk.make_folder(tmp_path / "to")
    disk.write_new(tmp_path / "from" / "a", b"a")
    disk.rename(tmp_path / "from" / "a", tmp_path / "to" / "a")
    disk.sync_folder(tmp_path / "to")
    assert (tmp_path / "to" / "a").read_bytes() == b"a"
    assert list((tmp_path / "from").iterdir()) == []


def test_the_mode_is_changed(disk: Files, tmp_path: Path) -> None:
    """`set_mode` sets the permission bits."""
    disk.write_new(tmp_path / "a", b"a")
    disk.set_mode(tmp_path / "a", 0o400)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o400


def test_replacing_leaves_the_new_content_and_no_temporary_file(
    disk: Files, tmp_path: Path
) -> None:
    """`replace_file` writes, replaces, and cleans up after itself."""
    replace_file(disk, tmp_path / "state", b"old")
    replace_file(disk, tmp_path / "state", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]
    assert (tmp_path / "state").read_bytes() == b"new"


def test_a_replacement_that_fails_leaves_no_temporary_file(disk: Files, tmp_path: Path) -> None:
    """What is at the place stays, and nothing else is there."""
    (tmp_path / "state").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(disk, tmp_path / "state", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_unsynced_content_is_lost_and_synced_content_stays(tmp_path: Path) -> None:
    """After a power cut a file holds exactly what it held at its last sync."""
    disk = LossyFiles(_folder(tmp_path, "live"))
    file = disk.open_append(disk.root / "log")
    disk.sync_folder(disk.root)
    file.write_all(b"kept\n")
    file.sync()
    file.write_all(b"lost\n")
    file.close()
    after = disk.survivors(tmp_path / "after")
    assert (after / "log").read_bytes() == b"kept\n"


def test_an_entry_is_lost_until_its_folder_is_synced(tmp_path: Path) -> None:
    """A synced file in an unsynced folder is gone; the same for a new folder."""
    disk = LossyFiles(_folder(tmp_path, "live"))
    disk.write_new(disk.root / "key", b"secret")
    disk.make_one_folder(disk.root / "folder")
    assert list(disk.survivors(tmp_path / "before").iterdir()) == []
    disk.sync_folder(disk.root)
    assert (disk.survivors(tmp_path / "after") / "key").read_bytes() == b"secret"
    assert (tmp_path / "after" / "folder").is_dir()


def test_an_unsynced_rename_and_removal_are_undone(tmp_path: Path) -> None:
    """Without a folder sync the old names come back."""
    live = _folder(tmp_path, "live")
    for name in ("a", "b"):
        (live / name).write_bytes(name.encode())
    disk = LossyFiles(live)
    disk.rename(live / "a", live / "c")
    disk.remove(live / "b")
    after = disk.survivors(tmp_path / "after")
    assert sorted(entry.name for entry in after.iterdir()) == ["a", "b"]


@given(seed=st.integers(0, 10_000))
def test_a_partial_survival_keeps_what_was_synced(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Whatever part of the unsynced writes survives, it stands behind the synced ones."""
    tmp_path = tmp_path_factory.mktemp("disk")
    disk = LossyFiles(_folder(tmp_path, "live"))
    file = disk.open_append(disk.root / "log")
    disk.sync_folder(disk.root)
    file.write_all(b"kept\n")
    file.sync()
    for _ in range(3):
        file.write_all(b"maybe\n")
    file.close()
    after = disk.survivors(tmp_path / "after", seed)
    content = (after / "log").read_bytes()
    assert content.startswith(b"kept\n")
    assert len(content) <= len(b"kept\n" + 3 * b"maybe\n")


def test_nothing_works_after_the_power_is_cut(tmp_path: Path) -> None:
    """The first operation at the cut and every later one fail; nothing more is written."""
    disk = LossyFiles(_folder(tmp_path, "live"), cut_at=1)
    file = disk.open_append(disk.root / "log")
    with pytest.raises(PowerCutError):
        file.write_all(b"never")
    with pytest.raises(PowerCutError):
        disk.sync_folder(disk.root)
    file.close()
    assert (disk.root / "log").read_bytes() == b""


def test_a_full_disk_takes_a_part_and_then_refuses(tmp_path: Path) -> None:
    """The last bytes that fit are written short, the next write fails with ENOSPC."""
    disk = LossyFiles(_folder(tmp_path, "live"), space_bytes=4)
    file = disk.open_append(disk.root / "log")
    assert file.write(b"123456") == 4
    with pytest.raises(OSError, match="No space left") as full:
        file.write(b"56")
    assert full.value.errno == errno.ENOSPC
    file.truncate(0)
    assert file.write(b"12") == 2
    file.close()


def test_a_new_file_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    """`write_new` on a full disk removes its half-written file."""
    disk = LossyFiles(_folder(tmp_path, "live"), space_bytes=4)
    with pytest.raises(OSError, match="No space left"):
        disk.write_new(disk.root / "key", b"too long")
    assert list(disk.root.iterdir()) == []


def test_replacing_keeps_the_old_or_the_new_content_at_every_cut(tmp_path: Path) -> None:
    """`replace_file` cut at each of its operations leaves the old content or the new, whole."""
    outcomes = set()
    for cut in range(20):
        live = _folder(tmp_path, f"live-{cut}")
        (live / "state").write_bytes(b"old")
        disk = LossyFiles(live, cut_at=cut)
        done = _until_the_power_goes(partial(replace_file, disk, disk.root / "state", b"new"))
        for seed in (None, *range(10)):
            after = disk.survivors(tmp_path / f"after-{cut}-{seed}", seed)
            content = (after / "state").read_bytes()
            assert content == b"new" if done else content in {b"old", b"new"}
            outcomes.add(content)
    assert outcomes == {b"old", b"new"}


def test_a_crash_point_does_nothing_until_it_is_armed() -> None:
    """Names are reported only inside `armed`."""
    seen: list[str] = []
    crash_point("files.before")
    with armed(seen.append):
        crash_point("files.inside")
    crash_point("files.after")
    assert seen == ["files.inside"]


@pytest.mark.parametrize(("wanted", "lines"), [("test.here", 1), ("test.here:3", 3)])
def test_a_process_kills_itself_at_the_named_point(wanted: str, lines: int) -> None:
    """`ETUDE_CRASH_AT=name:count` ends the process by SIGKILL at the count-th time."""
    program = (
        "from etude.files import arm_from_environment, crash_point\n"
        "arm_from_environment()\n"
        "for n in range(5):\n"
        "    print(n, flush=True)\n"
        "    crash_point('test.here')\n"
    )
    ran = run_bounded(
        [sys.executable, "-c", program],
        env={**os.environ, "ETUDE_CRASH_AT": wanted},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL
    assert len(ran.stdout.splitlines()) == lines


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def _until_the_power_goes(action: Callable[[], None]) -> bool:
    try:
        action()
    except PowerCutError:
        return False
    return True
