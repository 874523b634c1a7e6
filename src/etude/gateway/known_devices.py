"""What the gateway knows of bindings and revocations while it cannot ask: memory, and a file.

The link fills it: a snapshot of each kind when it begins, changes from then on. Every question is
answered from memory, at once. The file is for a start while web is away. It is written whole, off
the loop, so a damaged one can only come from outside: then the gateway begins empty and lets
devices come back until the link has told everything again.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import structlog

from etude.clock import Clock, to_us
from etude.files import Files, crash_point, replace_file
from etude.gateway.link_messages import LinkFrameError
from etude.people.binding_records import Binding, RevokedCredential

FILE: Final = "known-devices.json"
FORMAT: Final = 1

_log = structlog.get_logger(__name__)

Told = Callable[[str], None]


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    complete: bool
    bindings: tuple[Binding, ...]
    revoked: tuple[RevokedCredential, ...]


class KnownDevices:
    """Bindings and revocations, cached. Belongs to one event loop.

    Args:
        path: the cache file; its folder is made.
        clock: decides which revocations can be forgotten.
        files: the disk.
    """

    def __init__(self, path: Path, clock: Clock, files: Files | None = None) -> None:
        """Read the file; nothing of a damaged one is used."""
        self._path = path
        self._clock = clock
        self._files = files or Files()
        self._bindings: dict[str, Binding] = {}
        self._revoked: dict[str, int] = {}
        self._complete = False
        self._listeners: list[Told] = []
        self._revocation_listeners: list[Told] = []
        self._saving = asyncio.Lock()
        self._read()

    @property
    def complete(self) -> bool:
        """Whether everything was told once: before, a device that is not found may be bound."""
        return self._complete

    def __len__(self) -> int:
        """How many devices are bound."""
        return len(self._bindings)

    def binding(self, device_id: str) -> Binding | None:
        """Return the binding of a device that may connect."""
        return self._bindings.get(device_id)

    def is_known(self, device_id: str) -> bool:
        """Whether the device is bound."""
        return device_id in self._bindings

    def learner_of(self, device_id: str) -> int | None:
        """Return the surrogate key of the learner who has the device now."""
        found = self._bindings.get(device_id)
        return None if found is None else found.learner_at(self._clock.now())

    def is_revoked(self, credential_id: str) -> bool:
        """Whether this single credential is refused."""
        return credential_id in self._revoked

    def on_change(self, listener: Told) -> None:
        """Call `listener(device_id)` when a binding changes so that who is connected may not be."""
        self._listeners.append(listener)

    def on_revocation(self, listener: Told) -> None:
        """Call `listener(credential_id)` when a single credential is revoked."""
        self._revocation_listeners.append(listener)

    # What the link tells. Memory first, so that it counts at once; the file before it returns.

    async def replace_bindings(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these for all bindings there are; raises `LinkFrameError` and keeps what it knew."""
        self._replace(_decoded(items, Binding))
        await self._save()

    async def apply_bindings(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these bindings as they are now; raises `LinkFrameError`."""
        for binding in _decoded(items, Binding):
            self._put(binding)
        await self._save()

    async def replace_revocations(self, items: Sequence[msgspec.Raw]) -> None:
        """Take these for all single revocations there are; raises `LinkFrameError`."""
        self._revoked.clear()
        await self.apply_revocations(items)

    async def apply_revocations(self, items: Sequence[msgspec.Raw]) -> None:
        """Take more revocations; raises `LinkFrameError`."""
        for revoked in _decoded(items, RevokedCredential):
            self._revoked[revoked.credential_id] = revoked.forget_us
            for listener in self._revocation_listeners:
                listener(revoked.credential_id)
        await self._save()

    def _replace(self, bindings: Iterable[Binding]) -> None:
        told = {each.device_id: each for each in bindings if each.client_id is not None}
        before, self._bindings, self._complete = self._bindings, told, True
        for device_id, old in before.items():
            self._tell(device_id, old, told.get(device_id))

    def _put(self, binding: Binding) -> None:
        old = self._bindings.get(binding.device_id)
        if binding.client_id is None:
            self._bindings.pop(binding.device_id, None)
        else:
            self._bindings[binding.device_id] = binding
        self._tell(binding.device_id, old, self._bindings.get(binding.device_id))

    def _tell(self, device_id: str, old: Binding | None, new: Binding | None) -> None:
        if old is None or (
            new is not None
            and new.client_id == old.client_id
            and new.valid_from_us == old.valid_from_us
        ):
            return
        for listener in self._listeners:
            listener(device_id)

    # The file

    async def _save(self) -> None:
        """Write the file off the loop; what changes meanwhile is written after it."""
        async with self._saving:
            cached = self._cached()
            await asyncio.to_thread(self._write, cached)

    def _cached(self) -> _Cached:
        now_us = to_us(self._clock.now())
        return _Cached(
            format=FORMAT,
            complete=self._complete,
            bindings=tuple(self._bindings.values()),
            revoked=tuple(
                RevokedCredential(credential_id=each, forget_us=forget_us)
                for each, forget_us in self._revoked.items()
                if forget_us > now_us
            ),
        )

    def _write(self, cached: _Cached) -> None:
        try:
            self._files.make_folder(self._path.parent)
            crash_point("gateway.known_devices.before")
            replace_file(self._files, self._path, msgspec.json.encode(cached))
            crash_point("gateway.known_devices.written")
        except OSError as error:  # the next change, or the next link, writes it again
            _log.warning(
                "cache of devices not written",
                action="known_devices.not_written",
                reason=error.strerror or type(error).__name__,
            )

    def _read(self) -> None:
        try:
            cached = msgspec.json.decode(self._path.read_bytes(), type=_Cached)
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            _log.warning(
                "cache of devices unreadable: devices come back until web has told it again",
                action="known_devices.damaged",
                reason=type(error).__name__,
            )
            return
        if cached.format != FORMAT:
            _log.warning("cache of devices of another version", action="known_devices.format")
            return
        self._bindings = {each.device_id: each for each in cached.bindings}
        self._revoked = {each.credential_id: each.forget_us for each in cached.revoked}
        self._complete = cached.complete


_Item = TypeVar("_Item", bound=msgspec.Struct)


def _decoded(items: Sequence[msgspec.Raw], kind: type[_Item]) -> list[_Item]:
    try:
        return [msgspec.json.decode(item, type=kind) for item in items]
    except msgspec.DecodeError as error:
        # Its words name members and types, never their values.
        raise LinkFrameError(reason=str(error)[:200]) from error
