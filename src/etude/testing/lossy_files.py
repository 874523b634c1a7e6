"""A disk that forgets what was not synced, fills up, and loses power at any operation.

`kill -9` cannot show that a write is durable, because the kernel keeps the pages of a dead process
(`docs/rules.md 14`). `LossyFiles` works on a real folder and keeps a second, pessimistic picture of
it: the content each file had at its last sync, and the entries each folder had at its last sync.
`survivors` writes that picture into another folder: what a power cut leaves.

    disk = LossyFiles(tmp_path / "live")
    journal = Journal.open(disk.root, "s-1", files=disk)
    ...
    disk.survivors(tmp_path / "after")
"""

import errno
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Self

from etude.files import AppendFile, Files


class PowerCutError(BaseException):
    """The power went. Not an `Exception`: no handler of the code under test may swallow it."""


@dataclass(eq=False)
class _File:
    durable: bytes = b""
    pending: list[bytes | int] = field(default_factory=list)  # appended bytes, or a length cut to

    def content(self, changes: list[bytes | int]) -> bytes:
        content = self.durable
        for change in changes:
            content = content[:change] if isinstance(change, int) else content + change
        return content

    def sync(self) -> None:
        self.durable = self.content(self.pending)
        self.pending.clear()

    def after_power_cut(self, keep: random.Random | None) -> bytes:
        if keep is None:
            return self.durable
        kept = keep.randint(0, len(self.pending))
        content = self.content(self.pending[:kept])
        torn = self.pending[kept] if kept < len(self.pending) else b""
        if isinstance(torn, int):
            return content
        part = torn[: keep.randint(0, len(torn))]
        # A file system may have grown the file before its data reached the disk: zeros.
        return content + (bytes(len(part)) if keep.random() < 1 / 4 else part)


@dataclass(eq=False)
class _Folder:
    durable: "dict[str, _File | _Folder]" = field(default_factory=dict)
    live: "dict[str, _File | _Folder]" = field(default_factory=dict)
    pending: "list[dict[str, _File | _Folder | None]]" = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> Self:
        folder = cls()
        for entry in path.iterdir():
            node = cls.load(entry) if entry.is_dir() else _File(entry.read_bytes())
            folder.live[entry.name] = node
        folder.durable = dict(folder.live)
        return folder

    def change(self, entries: "dict[str, _File | _Folder | None]") -> None:
        _apply(self.live, entries)
        self.pending.append(entries)

    def sync(self) -> None:
        self.durable = dict(self.live)
        self.pending.clear()

    def after_power_cut(self, keep: random.Random | None) -> "dict[str, _File | _Folder]":
        entries = dict(self.durable)
        for change in self.pending[: keep.randint(0, len(self.pending))] if keep else ():
            _apply(entries, change)
        return entries


def _apply(entries: dict[str, _File | _Folder], changes: dict[str, _File | _Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class LossyFiles(Files):
    """`Files` on the real folder `root`, which must exist; what it holds already is durable.

    Args:
        root: everything that is written lies below it.
        cut_at: number of the operation (from 0) before which the power goes, or None.
        space_bytes: how much content the disk still takes, or None for no limit.

    Attributes:
        operations: what was done, in order, for a test that walks through every cut.
    """

    def __init__(
        self, root: Path, *, cut_at: int | None = None, space_bytes: int | None = None
    ) -> None:
        """Take the folder as it is for durable."""
        self.root = root
        self.cut_at = cut_at
        self.space_bytes = space_bytes
        self.operations: list[str] = []
        self._tree = _Folder.load(root)
        self._off = False

    def cut_power(self) -> None:
        """Refuse every operation from now on."""
        self._off = True

    def revived(self) -> Self:
        """Return the same disk for the next process: a kill is no power cut, nothing is lost yet.

        What was not synced before still is not.
        """
        again = type(self)(self.root, space_bytes=self.space_bytes)
        again._tree = self._tree  # noqa: SLF001 - another one of this very class
        return again

    def survivors(self, into: Path, seed: int | None = None) -> Path:
        """Write what a power cut leaves into the new folder `into` and return it.

        Without a seed, everything that was not synced is gone. With one, each file keeps a random
        part of its unsynced writes and each folder of its unsynced entries, as disks also do.
        """
        keep = None if seed is None else random.Random(seed)  # noqa: S311 - repeatable, no secret
        _write_survivors(self._tree, into, keep)
        return into

    def before(self, operation: str) -> None:
        """Count one primitive operation; `PowerCutError` where the power goes."""
        self._off = self._off or len(self.operations) == self.cut_at
        if self._off:
            raise PowerCutError(operation)
        self.operations.append(operation)

    def make_one_folder(self, path: Path, mode: int = 0o700) -> None:
        """See `Files.make_one_folder`."""
        self.before(f"mkdir {path.name}")
        super().make_one_folder(path, mode)
        self._folder(path.parent).change({path.name: _Folder()})

    def sync_folder(self, path: Path) -> None:
        """See `Files.sync_folder`."""
        self.before(f"sync folder {path.name}")
        super().sync_folder(path)
        if path.is_relative_to(self.root):
            self._folder(path).sync()

    def open_append(self, path: Path, mode: int = 0o600) -> AppendFile:
        """See `Files.open_append`."""
        if not path.exists():
            self.before(f"create {path.name}")
        opened = super().open_append(path, mode)
        folder = self._folder(path.parent)
        if path.name not in folder.live:
            folder.change({path.name: _File()})
        return _LossyAppendFile(self, opened, self._file(path))

    def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """See `Files.write_new`; counted as create, write and sync."""
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        file = self.open_append(path, mode)
        try:
            file.write_all(data)
            file.sync()
        except OSError:
            self.remove(path)
            raise
        finally:
            file.close()

    def rename(self, source: Path, target: Path) -> None:
        """See `Files.rename`."""
        self.before(f"rename {source.name} to {target.name}")
        node = self._node(source)
        super().rename(source, target)
        if source.parent == target.parent:
            self._folder(source.parent).change({source.name: None, target.name: node})
        else:
            self._folder(target.parent).change({target.name: node})
            self._folder(source.parent).change({source.name: None})

    def link(self, source: Path, target: Path) -> None:
        """See `Files.link`."""
        self.before(f"link {source.name} to {target.name}")
        super().link(source, target)
        self._folder(target.parent).change({target.name: self._file(source)})

    def remove(self, path: Path) -> None:
        """See `Files.remove`."""
        if not path.exists():
            return
        self.before(f"remove {path.name}")
        super().remove(path)
        self._folder(path.parent).change({path.name: None})

    def remove_tree(self, path: Path) -> None:
        """See `Files.remove_tree`; counted as one operation."""
        if not path.exists():
            return
        self.before(f"remove tree {path.name}")
        super().remove_tree(path)
        self._folder(path.parent).change({path.name: None})

    def take_space(self, wanted: int) -> int:
        """Return how many of `wanted` bytes still fit; `ENOSPC` when none does."""
        if self.space_bytes is None:
            return wanted
        if wanted and self.space_bytes <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(wanted, self.space_bytes)
        self.space_bytes -= taken
        return taken

    def give_space(self, released: int) -> None:
        """Take bytes that were cut off a file for free again."""
        if self.space_bytes is not None:
            self.space_bytes += released

    def _node(self, path: Path) -> _File | _Folder:
        node: _File | _Folder | None = self._tree
        for name in path.relative_to(self.root).parts:
            node = node.live.get(name) if isinstance(node, _Folder) else None
        return node or _not_here(path)

    def _folder(self, path: Path) -> _Folder:
        node = self._node(path)
        return node if isinstance(node, _Folder) else _not_here(path)

    def _file(self, path: Path) -> _File:
        node = self._node(path)
        return node if isinstance(node, _File) else _not_here(path)


def _not_here(path: Path) -> NoReturn:
    raise FileNotFoundError(errno.ENOENT, "made behind the layer's back, or not there", str(path))


class _LossyAppendFile(AppendFile):
    def __init__(self, disk: LossyFiles, opened: AppendFile, node: _File) -> None:
        super().__init__(opened.path, opened.fileno())
        self._disk = disk
        self._node = node

    def write(self, data: bytes) -> int:
        self._disk.before(f"write {self.path.name}")
        taken = super().write(data[: self._disk.take_space(len(data))])
        self._node.pending.append(data[:taken])
        return taken

    def truncate(self, size: int) -> None:
        self._disk.before(f"truncate {self.path.name}")
        released = self.size() - size
        super().truncate(size)
        self._disk.give_space(released)
        self._node.pending.append(size)

    def sync(self) -> None:
        self._disk.before(f"sync {self.path.name}")
        super().sync()
        self._node.sync()


def _write_survivors(folder: _Folder, into: Path, keep: random.Random | None) -> None:
    into.mkdir()
    for name, node in folder.after_power_cut(keep).items():
        if isinstance(node, _Folder):
            _write_survivors(node, into / name, keep)
        else:
            (into / name).write_bytes(node.after_power_cut(keep))
