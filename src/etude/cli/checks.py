"""What `etude doctor` looks at. Each check says what it saw and, if it failed, what to do.

A check changes nothing and never raises: what it cannot find out is its finding.
"""

import asyncio
import importlib.util
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import httpx2
import msgspec

import etude
from etude.cli.installation import FOLDER_MODE, KEY_BYTES, KEY_MODE, KEYS, keys_folder
from etude.errors import EtudeError
from etude.i18n import LOCALES, catalogue, text
from etude.people.errors import GatewayTokenMissingError
from etude.people.gateway_token import path_of, read_gateway_token
from etude.settings import Settings
from etude.store import check as check_schema
from etude.store import newest_revision

State = Literal["ok", "warning", "failed"]

OLDEST_PYTHON: Final = (3, 11)
OLDEST_SQLITE: Final = (3, 35, 0)  # RETURNING
LOW_DISK_MIB: Final = 1024
NO_DISK_MIB: Final = 100
PROBE_TIMEOUT_S: Final = 2.0
# A module that only this extra brings.
EXTRAS: Final = {"server": "litestar", "postgres": "asyncpg", "speech": "ctranslate2"}


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. `finding` is a key below `cli.doctor.<name>`, `params` fills its message."""

    name: str
    state: State
    finding: str
    params: dict[str, str | int] = {}

    def message(self, locale: str) -> str:
        """Return what a person reads."""
        return text(f"cli.doctor.{self.name}.{self.finding}", locale, **self.params)


def run_all(settings: Settings, now: datetime) -> list[Check]:
    """Run every check in the order in which they are worth reading."""
    checks: tuple[Callable[[], Check], ...] = (
        check_python,
        check_sqlite,
        lambda: check_extras(settings.database_url),
        lambda: check_data_folder(settings.data),
        lambda: check_keys(settings.data),
        lambda: check_gateway_token(settings.data),
        lambda: check_disk(settings.data),
        lambda: check_database(settings.database_url),
        lambda: check_port(settings.host, settings.port),
        lambda: check_port(settings.gateway_host, settings.gateway_port, "gateway"),
        lambda: check_port(settings.gateway_host, settings.gateway_http_port, "provisioning"),
        lambda: check_clock(now, _installed_at()),
        check_catalogues,
    )
    return [check() for check in checks]


def check_python(found: tuple[int, ...] = sys.version_info[:3]) -> Check:
    """Python is new enough."""
    good = found >= OLDEST_PYTHON
    return _check("python", "ok" if good else "failed", version=_dotted(found))


def check_sqlite(found: tuple[int, ...] = sqlite3.sqlite_version_info) -> Check:
    """The SQLite library that Python was built with is new enough."""
    good = found >= OLDEST_SQLITE
    return _check("sqlite", "ok" if good else "failed", version=_dotted(found))


def check_extras(database_url: str) -> Check:
    """Every extra that the settings need is installed."""
    missing = [name for name, module in EXTRAS.items() if importlib.util.find_spec(module) is None]
    needed = {"server"} | ({"postgres"} if database_url.startswith("postgresql") else set())
    if needed.intersection(missing):
        lacking = ",".join(name for name in missing if name in needed)
        return _check("extras", "failed", install=f"pip install 'etude[{lacking}]'")
    installed = [name for name in EXTRAS if name not in missing]
    return _check("extras", "ok", installed=", ".join(installed))


def check_data_folder(data: Path) -> Check:
    """The data folder is there, and only its owner may enter it."""
    try:
        found = data.stat()
    except OSError as error:
        return _check("data", "failed", "away", folder=str(data), reason=_reason(error))
    if not stat.S_ISDIR(found.st_mode):
        return _check("data", "failed", "away", folder=str(data), reason="ENOTDIR")
    mode = stat.S_IMODE(found.st_mode)
    if mode & ~FOLDER_MODE:
        return _check("data", "failed", "open", folder=str(data), mode=f"{mode:04o}")
    return _check("data", "ok", folder=str(data))


def check_keys(data: Path) -> Check:
    """Every key is there, whole, and only its owner may read it."""
    for name in KEYS:
        path = keys_folder(data) / name
        try:
            found = path.stat()
        except OSError as error:
            return _check("keys", "failed", "away", key=str(path), reason=_reason(error))
        mode = stat.S_IMODE(found.st_mode)
        if mode & ~KEY_MODE:
            return _check("keys", "failed", "open", key=str(path), mode=f"{mode:04o}")
        if found.st_size != KEY_BYTES:
            return _check("keys", "failed", "broken", key=str(path))
    return _check("keys", "ok", count=len(KEYS))


def check_gateway_token(data: Path) -> Check:
    """The gateway has a token to show to web, and only its owner may read it.

    Whether it still counts is for web to say: the gateway's log has it.
    """
    path = path_of(data)
    try:
        read_gateway_token(data)
        mode = stat.S_IMODE(path.stat().st_mode)
    except (GatewayTokenMissingError, OSError):
        return _check("gateway_token", "failed", "away", file=str(path))
    if mode & ~KEY_MODE:
        return _check("gateway_token", "failed", "open", file=str(path), mode=f"{mode:04o}")
    return _check("gateway_token", "ok")


def check_disk(data: Path) -> Check:
    """There is room where the data folder is, or would be."""
    place = next(folder for folder in (data, *data.parents) if folder.exists())
    free_mib = shutil.disk_usage(place).free // 2**20
    state: State = "ok"
    if free_mib < LOW_DISK_MIB:
        state = "failed" if free_mib < NO_DISK_MIB else "warning"
    return _check("disk", state, free_mib=free_mib)


def check_database(url: str) -> Check:
    """The database answers and has this version's schema."""
    kind = url.partition(":")[0]
    if kind == "sqlite" and not Path(url.removeprefix("sqlite:///")).exists():
        return _check("database", "failed", "away", reason="ENOENT")
    try:
        asyncio.run(check_schema(url))
    except EtudeError as error:
        if error.code in {"SCHEMA_BEHIND", "SCHEMA_AHEAD"}:
            finding = error.code.partition("_")[2].lower()
            return _check("database", "failed", finding, **_shown(error))
        return _check("database", "failed", "away", reason=error.code)
    return _check("database", "ok", kind=kind, revision=newest_revision())


def check_port(host: str, port: int, name: str = "port") -> Check:
    """The port is free, or it is Etude that has it and answers that it serves."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if _is_etude(host, port):
                return _check(name, "ok", "serving", host=host, port=port)
            reason = _reason(error)
            return _check(name, "failed", "taken", host=host, port=port, reason=reason)
    return _check(name, "ok", host=host, port=port)


def check_clock(now: datetime, installed: datetime) -> Check:
    """The clock is not earlier than this installation, and the time zone is known."""
    if now < installed:
        return _check("clock", "failed", now=now.isoformat("T", "seconds"))
    local = now.astimezone()
    return _check("clock", "ok", now=local.isoformat("T", "seconds"), zone=local.tzname() or "-")


def check_catalogues() -> Check:
    """Every language has every message."""
    keys = [set(catalogue(locale)) for locale in LOCALES]
    if any(one != keys[0] for one in keys):
        return _check("catalogues", "failed")
    return _check("catalogues", "ok", languages=", ".join(LOCALES), count=len(keys[0]))


def _check(name: str, state: State, finding: str = "", /, **params: str | int) -> Check:
    return Check(name=name, state=state, finding=finding or state, params=params)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _shown(error: EtudeError) -> dict[str, str | int]:
    return {name: str(value) for name, value in error.params.items()}


def _is_etude(host: str, port: int) -> bool:
    name = f"[{host}]" if ":" in host else host
    try:
        answer = httpx2.get(f"http://{name}:{port}/health", timeout=PROBE_TIMEOUT_S)
    except httpx2.HTTPError:
        return False
    return answer.status_code == httpx2.codes.OK


def _installed_at() -> datetime:
    """When the package's files were written here: no clock should be earlier than that."""
    return datetime.fromtimestamp(Path(etude.__file__).stat().st_mtime, UTC)
