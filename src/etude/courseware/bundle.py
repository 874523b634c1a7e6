"""A bundle that is read: archive, table of files and content hash are checked, in this order."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

from etude.courseware.bundle_errors import (
    BundleDamagedError,
    BundleHashMismatchError,
    BundleIdMismatchError,
    BundleManifestError,
    BundleTableError,
    BundleTooLargeError,
)
from etude.courseware.manifest import (
    CLASSROOM,
    MANIFEST,
    BundleManifest,
    content_hash,
    read_manifest,
)
from etude.courseware.zip_reading import Stored, blocks, checked_digest, read_directory

CLASSROOM_BYTES: Final = 64 << 20
FILE_BYTES: Final = 200 << 20


class Bundle:
    """An open bundle whose archive and manifest are sound; `check_files` looks at every byte."""

    def __init__(self, file: BinaryIO) -> None:
        """Read directory and manifest.

        Raises:
            BundleUnsafeError, BundleNotZipError, BundleTooLargeError, BundleTooManyEntriesError:
                the first thing that is wrong.
        """
        self._file = file
        self._entries = {entry.name: entry for entry in read_directory(file)}
        found = self._entries.get(MANIFEST)
        if found is None:
            raise BundleManifestError(reason="there is none")
        self.manifest: BundleManifest = read_manifest(self._whole(found, CLASSROOM_BYTES))
        self._check_table()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the bundle in a file; close it with `close` or a `with` block."""
        file = path.open("rb")
        try:
            return cls(file)
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def size(self) -> int:
        """How many bytes the bundle has."""
        return self._file.seek(0, os.SEEK_END)

    def check_identity(self, courseware_id: str) -> None:
        """Raise `BundleIdMismatchError` unless it is the bundle of this courseware."""
        if self.manifest.courseware_id != courseware_id:
            raise BundleIdMismatchError(expected=courseware_id, found=self.manifest.courseware_id)

    def check_files(self) -> None:
        """Compare every byte of every file with the table.

        Raises:
            BundleDamagedError: naming the first file that differs.
        """
        self._check_checksum(MANIFEST)
        for row in self.manifest.files:
            if self._check_checksum(row.path) != row.sha256:
                raise BundleDamagedError(entry=row.path)

    def check_hash(self, registered: str | None = None) -> None:
        """Raise `BundleHashMismatchError` unless declared, recomputed, registered hash agree."""
        declared, found = self.manifest.content_hash, content_hash(self.manifest)
        if not declared == found == (registered or found):
            raise BundleHashMismatchError(
                declared=declared, found=found, registered=registered or ""
            )

    def classroom_bytes(self) -> bytes:
        """Return the document of the classroom, as it stands in the bundle."""
        found = self._entries.get(CLASSROOM)
        if found is None:
            raise BundleTableError(entry=CLASSROOM)
        return self._whole(found, CLASSROOM_BYTES)

    def blocks(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file of the bundle."""
        return blocks(self._file, self._entries[path])

    def beginning_of(self, path: str, length: int = 64) -> bytes:
        """Return the first bytes of a file of the bundle, to see of what kind it is."""
        entry = self._entries[path]
        self._file.seek(entry.start)
        return self._file.read(min(length, entry.size))

    def _check_checksum(self, name: str) -> str:
        return checked_digest(self._file, self._entries[name])

    def _check_table(self) -> None:
        table = {row.path: row.size for row in self.manifest.files}
        entries = {name: one.size for name, one in self._entries.items() if name != MANIFEST}
        if table != entries:
            differing = sorted(set(table.items()) ^ set(entries.items()))
            raise BundleTableError(entry=differing[0][0])
        for name, size in entries.items():
            limit = CLASSROOM_BYTES if name == CLASSROOM else FILE_BYTES
            if size > limit:
                raise BundleTooLargeError(entry=name, limit_bytes=limit)

    def _whole(self, entry: Stored, limit: int) -> bytes:
        if entry.size > limit:
            raise BundleTooLargeError(entry=entry.name, limit_bytes=limit)
        return b"".join(blocks(self._file, entry))
