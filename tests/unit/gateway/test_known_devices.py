import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from etude.clock import to_us
from etude.files import Files, armed
from etude.gateway.known_devices import FILE, KnownDevices
from etude.gateway.link_messages import LinkFrameError
from etude.people.binding_records import Binding, Held, RevokedCredential
from etude.testing.clocks import ManualClock

TOY = Binding(device_id="02:00:00:00:00:01", device_key=1, client_id="client-1")
OTHER = Binding(device_id="02:00:00:00:00:02", device_key=2, client_id="client-2")


class KilledError(BaseException):
    pass


def raw(*items: msgspec.Struct) -> Sequence[msgspec.Raw]:
    return [msgspec.Raw(msgspec.json.encode(item)) for item in items]


def known(tmp_path: Path, clock: ManualClock | None = None) -> KnownDevices:
    return KnownDevices(tmp_path / "gateway" / FILE, clock or ManualClock())


def test_nothing_is_complete_before_the_link_has_told_everything(tmp_path: Path) -> None:
    """An empty cache does not say that a device is unknown."""
    devices = known(tmp_path)
    assert not devices.complete
    asyncio.run(devices.apply_bindings(raw(TOY)))
    assert devices.is_known(TOY.device_id)
    assert not devices.complete
    asyncio.run(devices.replace_bindings([]))
    assert devices.complete
    assert not devices.is_known(TOY.device_id)


def test_what_was_told_outlives_the_process(tmp_path: Path) -> None:
    """A start while web is away knows bindings and revocations."""
    clock = ManualClock()
    devices = known(tmp_path, clock)
    revoked = RevokedCredential(credential_id="c-1", forget_us=to_us(clock.now()) + 1)
    over = RevokedCredential(credential_id="c-0", forget_us=to_us(clock.now()))

    async def tell() -> None:
        await devices.replace_bindings(raw(TOY, OTHER))
        await devices.replace_revocations(raw(revoked, over))
        await devices.apply_bindings(raw(msgspec.structs.replace(OTHER, client_id=None)))

    asyncio.run(tell())
    again = known(tmp_path, clock)
    assert again.complete
    assert again.binding(TOY.device_id) == TOY
    assert not again.is_known(OTHER.device_id)
    assert again.is_revoked("c-1")
    assert not again.is_revoked("c-0")  # it has expired, and is forgotten
    assert (tmp_path / "gateway" / FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"\xff",
        b'{"format":2}',
        b'{"format":9,"complete":true,"bindings":[],"revoked":[]}',
    ],
)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    """Nothing of it is used, and the next change replaces it."""
    path = tmp_path / "gateway" / FILE
    path.parent.mkdir()
    path.write_bytes(content)
    devices = known(tmp_path)
    assert not devices.complete
    assert len(devices) == 0
    asyncio.run(devices.replace_bindings(raw(TOY)))
    assert known(tmp_path).binding(TOY.device_id) == TOY


@pytest.mark.parametrize(
    ("instant", "kept"),
    [
        ("gateway.known_devices.before", False),
        ("files.replace.written", False),
        ("gateway.known_devices.written", True),
    ],
)
def test_a_kill_leaves_the_old_file_or_the_new(tmp_path: Path, instant: str, *, kept: bool) -> None:
    """Killed at any instant the cache is whole; the next link tells what it lacks."""
    devices = known(tmp_path)
    asyncio.run(devices.replace_bindings(raw(TOY)))

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        asyncio.run(devices.apply_bindings(raw(OTHER)))
    again = known(tmp_path)
    assert again.is_known(TOY.device_id)
    assert again.is_known(OTHER.device_id) is kept


def test_a_full_disk_costs_the_cache_and_nothing_else(tmp_path: Path) -> None:
    """What was told counts in memory; the next change is written again."""

    class FullFiles(Files):
        full = True

        def write_new(self, path: Path, data: bytes, mode: int = 0o600) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().write_new(path, data, mode)

    files = FullFiles()
    devices = KnownDevices(tmp_path / FILE, ManualClock(), files)
    asyncio.run(devices.replace_bindings(raw(TOY)))
    assert devices.is_known(TOY.device_id)
    assert not (tmp_path / FILE).exists()
    files.full = False
    asyncio.run(devices.apply_bindings(raw(OTHER)))
    assert len(known_at(tmp_path)) == 2


def known_at(tmp_path: Path) -> KnownDevices:
    return KnownDevices(tmp_path / FILE, ManualClock())


def test_an_item_that_is_none_changes_nothing(tmp_path: Path) -> None:
    """A snapshot with one bad item is refused whole, with an error that the link knows."""
    devices = known(tmp_path)
    asyncio.run(devices.replace_bindings(raw(TOY)))
    with pytest.raises(LinkFrameError):
        asyncio.run(devices.replace_bindings([*raw(OTHER), msgspec.Raw(b'{"device_id":7}')]))
    assert devices.is_known(TOY.device_id)
    assert not devices.is_known(OTHER.device_id)


def test_the_holder_counts_at_the_time_of_the_question(tmp_path: Path) -> None:
    """A holding that begins tomorrow needs no message tomorrow."""
    clock = ManualClock()
    now_us = to_us(clock.now())
    hour_us = 3_600_000_000
    held = msgspec.structs.replace(
        TOY,
        holdings=(
            Held(learner_key=7, starts_us=now_us - 1, ends_us=now_us + hour_us),
            Held(learner_key=8, starts_us=now_us + hour_us),
        ),
    )
    devices = known(tmp_path, clock)
    asyncio.run(devices.replace_bindings(raw(held)))
    assert devices.learner_of(TOY.device_id) == 7
    clock.advance(3600)
    assert devices.learner_of(TOY.device_id) == 8
    assert devices.learner_of("nobody") is None


def test_who_is_connected_is_told_when_a_binding_ends(tmp_path: Path) -> None:
    """Unbound, bound anew, or revoked: told once. Another holder: not told."""
    told: list[str] = []
    devices = known(tmp_path)
    devices.on_change(told.append)

    async def tell(binding: Binding) -> None:
        await devices.apply_bindings(raw(binding))

    replace = msgspec.structs.replace
    for change, expected in (
        (TOY, 0),
        (replace(TOY, holdings=(Held(learner_key=1, starts_us=0),)), 0),
        (replace(TOY, valid_from_us=5), 1),
        (replace(TOY, valid_from_us=5, client_id="client-3"), 2),
        (replace(TOY, valid_from_us=5, client_id=None), 3),
        (replace(TOY, valid_from_us=5, client_id=None), 3),
    ):
        asyncio.run(tell(change))
        assert told == [TOY.device_id] * expected
