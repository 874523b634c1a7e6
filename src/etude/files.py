"""Files that survive a crash, and the one seam through which durable writes go.

Every durable write of Etude's own files (journal, blobs, state, keys) goes through a `Files`, so
that a test can stand in with a layer that forgets what was not synced (`docs/rules.md 14, 51`).
Errors are the operating system's own (`OSError`); each adapter maps them to an error of its noun.

`crash_point(name)` marks the instants at which a killed process must lose nothing. They are listed
in `docs/crash-points.md`; outside tests they cost one comparison.
"""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_armed: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Mark a named instant of a durable write; a test may end the process or raise right here."""
    if _armed is not None:
        _armed(name)


@contextlib.contextmanager
def armed(action: Callable[[str], None]) -> Iterator[None]:
    """Call `action(name)` at every crash point while the context is open (tests only)."""
    global _armed  # noqa: PLW0603 - one process, one switch: a parameter would reach every function
    before, _armed = _armed, action
    try:
        yield
    finally:
        _armed = before


def arm_from_environment(variable: str = "ETUDE_CRASH_AT") -> None:
    """Arm `kill -9` on oneself at the crash point that `variable` holds: `name` or `name:count`."""
    wanted = os.environ.get(variable)
    if not wanted:
        return
    name, _, count = wanted.partition(":")
    left = int(count or 1)

    def kill(reached: str) -> None:
        nonlocal left
        if reached == name:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    global _armed  # noqa: PLW0603 - see `armed`
    _armed = kill


class AppendFile:
    """A file that only grows, opened by `Files.open_append`. One writer."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Wrap an open descriptor; use `Files.open_append`."""
        self.path = path
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Return the descriptor (for an advisory lock)."""
        return self._descriptor

    def size(self) -> int:
        """Length in bytes."""
        return os.fstat(self._descriptor).st_size

    def write(self, data: bytes) -> int:
        """Append with one `write` call; return how many bytes the system took."""
        return os.write(self._descriptor, data)

    def truncate(self, size: int) -> None:
        """Cut the file back to `size` bytes."""
        os.ftruncate(self._descriptor, size)

    def write_all(self, data: bytes) -> None:
        """Append every byte, however many calls the system needs.

        A failure in the middle leaves a part behind: the caller cuts back with `truncate`.
        """
        view = memoryview(data)
        while view:
            view = view[self.write(bytes(view)) :]

    def sync(self) -> None:
        """Return once the content is on the disk (`fdatasync`; `fsync` where there is none)."""
        if sys.platform == "linux":
            os.fdatasync(self._descriptor)
        else:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor; syncs nothing."""
        os.close(self._descriptor)


class Files:
    """The real disk."""

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        """Create `path` and its missing parents, each entry synced into its parent."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                self.make_one_folder(folder, mode)
            self.sync_folder(folder.parent)

    def make_one_folder(self, path: Path, mode: int = 0o700) -> None:
        """Create one folder; durable after `sync_folder` of its parent. `FileExistsError` else."""
        path.mkdir(mode)

    def sync_folder(self, path: Path) -> None:
        """Make the entries of a folder durable (`fsync` of the folder)."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        """Open or create a file for appending; a new one is durable after `sync_folder`."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return AppendFile(path, os.open(path, flags, mode))

    def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """Write a file that does not exist yet and sync its content; `FileExistsError` else.

        The entry itself is durable after `sync_folder`. On an error nothing is left behind.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Move over `target` in one step; durable after `sync_folder`."""
        source.rename(target)

    def link(self, source: Path, target: Path) -> None:
        """Give the file a second name; `FileExistsError` if the name is taken."""
        os.link(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file if it is there; durable after `sync_folder`."""
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        """Remove a folder with all that is in it, if it is there; not in one step."""
        if path.is_dir():
            shutil.rmtree(path)

    def set_mode(self, path: Path, mode: int) -> None:
        """Change the permission bits. Nothing relies on their outliving a power cut."""
        path.chmod(mode)


def replace_file(files: Files, path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace `path` as a whole: temporary file, sync, rename, folder sync.

    A reader, and a process that starts after a crash, sees the old content or the new.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    files.remove(temporary)
    try:
        files.write_new(temporary, data, mode)
        crash_point("files.replace.written")
        files.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):  # what was to be said is said already
            files.remove(temporary)
        raise
    files.sync_folder(path.parent)
    crash_point("files.replace.renamed")
