"""Keys of serial numbers: how a device with a serial in its fuses proves that it is that one.

Whoever makes devices burns a serial number and a key into each (activation version 2 of the
XiaoZhi protocol). `etude device keys FILE.csv` brings them here, into a file of the keys folder
that the gateway reads again when it has changed; no database is asked.
"""

import csv
import hmac
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from etude.files import Files, crash_point, replace_file
from etude.people.errors import SerialKeyInvalidError, SerialKeysUnreadableError

FILE: Final = "device-serials.json"
MAX_SERIAL: Final = 64
_SERIAL: Final = re.compile(rf"[A-Za-z0-9._:-]{{1,{MAX_SERIAL}}}")
_KEY: Final = re.compile(r"[\x21-\x7e]{16,256}")

_log = structlog.get_logger(__name__)


class SerialKeys:
    """The keys of an installation, as its file has them. Read from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        """Read below the keys folder, on the first `refresh`."""
        self._path = folder / FILE
        self._seen: tuple[int, int] | None = None
        self._keys: Mapping[str, str] = {}

    def refresh(self) -> None:
        """Read the file if it has changed. One that cannot be read changes nothing, with a log."""
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_ino)
            if seen != self._seen:
                self._keys = read_keys(self._path)
                self._seen = seen
        except FileNotFoundError:
            self._keys, self._seen = {}, None
        except (OSError, SerialKeysUnreadableError) as error:
            reason = type(error).__name__
            _log.warning("keys of serials unreadable", action="device.serials_lost", reason=reason)

    def knows(self, serial: str) -> bool:
        """Whether a device that names this serial number has to prove it."""
        return serial in self._keys

    def proves(self, serial: str, challenge: str, given: str) -> bool:
        """Whether `given` is the hex HMAC-SHA256 of the challenge with the serial's key.

        Firmware signs with the bytes that a hex key stands for, py-xiaozhi with its digits: both
        show that the key is known.
        """
        key = self._keys.get(serial, "")
        claimed = given.lower().encode("utf-8", "replace")
        right = False
        for secret in _secrets(key):
            expected = hmac.digest(secret, challenge.encode(), "sha256").hex().encode()
            right |= hmac.compare_digest(expected, claimed)
        return right and bool(key)


def read_keys(path: Path) -> dict[str, str]:
    """Return serial numbers and keys; raises `OSError` or `SerialKeysUnreadableError`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SerialKeysUnreadableError(file=str(path)) from error


def import_keys(files: Files, folder: Path, rows: Mapping[str, str]) -> int:
    """Add keys, or replace those of serial numbers that are known; return how many are kept.

    Raises `SerialKeysUnreadableError`: the file that is there is damaged, nothing was changed.
    """
    path = folder / FILE
    kept = read_keys(path) if path.exists() else {}
    kept.update(rows)
    replace_file(files, path, msgspec.json.encode(kept))
    crash_point("people.serial_keys.imported")
    return len(kept)


def parse_keys(lines: Iterable[str]) -> dict[str, str]:
    """Read `serial,key` lines (CSV; a first line `serial,key` and empty lines are passed over).

    Raises `SerialKeyInvalidError` naming the line; a key is never repeated in it.
    """
    rows: dict[str, str] = {}
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            given = [cell.strip() for cell in cells]
            if not any(given) or (reader.line_num == 1 and given[:2] == ["serial", "key"]):
                continue
            serial, key = _row(given, reader.line_num)
            if serial in rows:
                raise SerialKeyInvalidError(line=reader.line_num, reason="serial twice")
            rows[serial] = key
    except csv.Error as error:
        raise SerialKeyInvalidError(line=reader.line_num, reason="no CSV") from error
    return rows


def _row(cells: list[str], line: int) -> tuple[str, str]:
    if len(cells) != 2:  # noqa: PLR2004 - serial and key
        raise SerialKeyInvalidError(line=line, reason="not two columns")
    serial, key = cells
    if not _SERIAL.fullmatch(serial):
        raise SerialKeyInvalidError(line=line, reason="serial")
    if not _KEY.fullmatch(key):
        raise SerialKeyInvalidError(line=line, reason="key")
    return serial, key


def _secrets(key: str) -> list[bytes]:
    try:
        return [bytes.fromhex(key), key.encode()]
    except ValueError:
        return [key.encode()]
