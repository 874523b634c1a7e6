import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from etude.clock import to_us
from etude.files import armed
from etude.people import audit, bindings
from etude.people.authentication import Authenticator
from etude.people.bind_codes import CODES_KEPT, note_code, shown_codes
from etude.people.binding_feed import change_sources, report_sinks
from etude.people.binding_records import (
    BINDINGS,
    CODES,
    REVOCATIONS,
    Binding,
    PendingBinding,
    Proof,
    RevokedCredential,
    VoidCode,
)
from etude.people.bindings import BindRequest, Bound
from etude.people.changes import marks
from etude.people.device_credentials import DeviceKey, DeviceKeys, issue
from etude.people.errors import (
    BindCodeExpiredError,
    BindCodeUnknownError,
    BindCodeUsedError,
    BindProofMissingError,
    DeviceBoundElsewhereError,
    DeviceNotBoundError,
    LearnerUnknownError,
    TokenInvalidError,
)
from etude.people.records import HOST
from etude.testing.clocks import ManualClock

MAC = "02:00:00:00:00:01"
CLIENT = "client-1"
HOUR = timedelta(hours=1)
KEY = DeviceKey(b"k" * 32)


class KilledError(BaseException):
    pass


class Desk:
    """An operator at a school's database, and the gateways that tell codes."""

    def __init__(self, school: Any) -> None:
        self.school = school

    def work(self, act: Callable[[Any], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with self.school.database.transaction() as work:
                return await act(work)

        return self.school.run(main())

    def read(self, act: Callable[[Any], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with self.school.database.read() as connection:
                return await act(connection)

        return self.school.run(main())

    def shows(self, code: str = "123456", device_id: str = MAC, **fields: Any) -> PendingBinding:
        known = {"client_id": CLIENT, "board": "toy", "version": "2.2.6"}
        known["expires_us"] = to_us(self.school.now + HOUR)
        pending = PendingBinding(code=code, device_id=device_id, **(known | fields))
        self.work(lambda work: note_code(work, pending, self.school.now))
        return pending

    def bind(self, code: str = "123456", **fields: Any) -> Bound:
        wanted = BindRequest(code=code, **fields)
        bound: Bound = self.work(
            lambda work: bindings.bind_device(work, wanted, actor=HOST, now=self.school.now)
        )
        return bound

    def unbind(self, device_id: str = MAC) -> None:
        self.work(
            lambda work: bindings.unbind_device(work, device_id, actor=HOST, now=self.school.now)
        )

    def told(self, kind: str = BINDINGS) -> list[Any]:
        """What a gateway that begins a link is told."""
        clock = ManualClock(self.school.now)
        source = {each.kind: each for each in change_sources(clock)}[kind]
        return list(self.read(source.everything))

    def marked(self, kind: str = BINDINGS) -> list[Any]:
        """What a linked gateway is told of every mark."""
        source = {each.kind: each for each in change_sources(ManualClock(self.school.now))}[kind]

        async def main(connection: Any) -> list[Any]:
            keys = {each.subject_key for each in await marks(connection) if each.kind == kind}
            return list(await source.about(connection, keys))

        return list(self.read(main))

    def actions(self) -> list[str]:
        page = self.read(lambda connection: audit.list_audit(connection, limit=100))
        return [entry.action for entry in page.items]

    def who(self, credential: str) -> Any:
        clock = ManualClock(self.school.now)
        door = Authenticator(self.school.database, clock, DeviceKeys(KEY))
        return self.school.run(door.authenticate(credential))


@pytest.fixture
def desk(school: Any) -> Desk:
    return Desk(school)


def test_from_code_to_binding(desk: Desk) -> None:
    """A new device is registered, bound, audited, and gateways are told."""
    desk.shows()
    bound = desk.bind(name="Violin 1")
    assert (bound.device.device_id, bound.device.name, bound.rebound) == (MAC, "Violin 1", False)
    key = bound.device.device_key
    expected = Binding(device_id=MAC, device_key=key, client_id=CLIENT)
    assert desk.told() == [expected]
    assert desk.marked() == [expected]
    assert desk.actions() == ["device.added", "device.bound"]


def test_a_device_that_is_registered_keeps_its_name(desk: Desk) -> None:
    """Binding makes no second one."""
    desk.school.device(MAC)
    desk.shows()
    assert desk.bind(name="Other").device.name == "Toy"
    assert desk.actions() == ["device.bound"]


def test_bound_to_a_learner_at_once(desk: Desk) -> None:
    """One act: binding and holding; of an unknown learner neither happens."""
    learner = desk.school.learner()
    desk.shows()
    with pytest.raises(LearnerUnknownError):
        desk.bind(learner_id="nobody")
    assert desk.told() == []
    desk.bind(learner_id=learner.learner_id)
    (binding,) = desk.told()
    assert binding.learner_at(desk.school.now) == learner.learner_key
    assert desk.actions().count("device.held") == 2


def test_each_code_that_binds_nothing_says_why(desk: Desk) -> None:
    """Unknown, used and expired are three answers."""
    desk.shows("111111")
    desk.shows("222222", "02:00:00:00:00:02")
    desk.bind("111111")
    with pytest.raises(BindCodeUsedError) as used:
        desk.bind("111111")
    assert used.value.params["device_id"] == MAC
    for unknown in ("333333", "", "\uff11" * 6, "1" * 500, "\x00", "\ud800"):
        with pytest.raises(BindCodeUnknownError):
            desk.bind(unknown)
    desk.school.now += HOUR
    with pytest.raises(BindCodeExpiredError):
        desk.bind("222222")
    desk.school.now += CODES_KEPT + timedelta(seconds=1)
    desk.shows("444444")
    with pytest.raises(BindCodeUnknownError):
        desk.bind("222222")


def test_of_two_operators_at_once_one_binds(desk: Desk) -> None:
    """The other is told that the code is used."""
    desk.shows()
    wanted = BindRequest(code="123456")

    async def bind() -> Any:
        async with desk.school.database.transaction() as work:
            return await bindings.bind_device(work, wanted, actor=HOST, now=desk.school.now)

    async def both() -> list[Any]:
        return await asyncio.gather(bind(), bind(), bind(), return_exceptions=True)

    outcomes = desk.school.run(both())
    assert sum(isinstance(each, Bound) for each in outcomes) == 1
    assert sum(isinstance(each, BindCodeUsedError) for each in outcomes) == 2
    assert desk.actions() == ["device.added", "device.bound"]


def test_another_client_id_takes_the_place_only_if_asked(desk: Desk) -> None:
    """Refused, the code stays good; asked for, the former client is out."""
    desk.shows()
    desk.bind()
    desk.shows("222222", client_id="client-2")
    with pytest.raises(DeviceBoundElsewhereError):
        desk.bind("222222")
    assert desk.told()[0].client_id == CLIENT
    assert desk.bind("222222", rebind=True).rebound
    assert desk.told()[0].client_id == "client-2"


def test_the_same_client_may_be_bound_again(desk: Desk) -> None:
    """A gateway that had lost its cache showed a code: typing it does no harm."""
    desk.shows()
    desk.bind()
    desk.shows("222222")
    assert not desk.bind("222222").rebound


def test_a_serial_that_must_be_proven_is(desk: Desk) -> None:
    """Before the proof the code binds nothing and stays good."""
    pending = desk.shows(serial="SN-1", proof=Proof.AWAITED)
    with pytest.raises(BindProofMissingError):
        desk.bind()
    proven = msgspec.structs.replace(pending, proof=Proof.SHOWN)
    desk.work(lambda work: note_code(work, proven, desk.school.now))
    assert desk.bind().device.device_id == MAC


def test_a_code_that_is_told_again_stays_used(desk: Desk) -> None:
    """A link that begins anew tells every code; none comes to life by that."""
    desk.shows()
    desk.bind()
    desk.shows()
    with pytest.raises(BindCodeUsedError):
        desk.bind()


def test_two_devices_with_one_code_are_both_told_to_show_another(desk: Desk) -> None:
    """Nobody is bound by mistake: the code is void, and gateways drop it."""
    desk.shows("000042")
    desk.shows("000042", "02:00:00:00:00:02")
    with pytest.raises(BindCodeExpiredError):
        desk.bind("000042")
    assert desk.marked(CODES) == [VoidCode(code="000042")]
    desk.school.now += timedelta(seconds=1)
    desk.shows("000042", "02:00:00:00:00:03")
    assert desk.bind("000042").device.device_id == "02:00:00:00:00:03"


def test_codes_are_listed_for_who_looks_for_a_device(desk: Desk) -> None:
    """Live and unused ones, the newest first, with what the device says of itself."""
    desk.shows("111111")
    desk.school.now += timedelta(minutes=1)
    desk.shows("222222", "02:00:00:00:00:02", board="other")
    listed = desk.read(lambda connection: shown_codes(connection, desk.school.now))
    assert [(each.code, each.board) for each in listed] == [("222222", "other"), ("111111", "toy")]
    desk.bind("222222")
    listed = desk.read(lambda connection: shown_codes(connection, desk.school.now))
    assert [each.code for each in listed] == ["111111"]


def test_what_a_gateway_tells_is_not_trusted(desk: Desk) -> None:
    """Nonsense is passed over, what is right beside it stored, no code lives for ever."""
    good = PendingBinding(
        code="123456",
        device_id=MAC,
        client_id=CLIENT,
        board="x" * 999,
        version="",
        expires_us=2**60,
    )
    replace = msgspec.structs.replace
    items = [
        replace(good, code="12345x"),
        replace(good, device_id="a b"),
        replace(good, client_id="c" * 500),
        good,
    ]
    raws = [msgspec.Raw(msgspec.json.encode(each)) for each in items] + [msgspec.Raw(b'{"a":1}')]
    (sink,) = report_sinks()
    desk.work(lambda work: sink.store(work, "gw", raws, desk.school.now))
    (listed,) = desk.read(lambda connection: shown_codes(connection, desk.school.now))
    assert (listed.code, len(listed.board)) == ("123456", 64)
    assert listed.expires_at == desk.school.now + timedelta(hours=24)


def test_an_unbound_device_is_told_as_such(desk: Desk) -> None:
    """Gateways learn it; binding it again is a new beginning for credentials."""
    desk.shows()
    key = desk.bind().device.device_key
    desk.unbind()
    now_us = to_us(desk.school.now)
    assert desk.told() == []
    assert desk.marked() == [Binding(device_id=MAC, device_key=key, valid_from_us=now_us)]
    with pytest.raises(DeviceNotBoundError):
        desk.unbind()
    desk.shows("222222")
    desk.bind("222222")
    assert desk.told()[0].valid_from_us == now_us


@pytest.mark.parametrize("instant", ["people.binding.stored", "store.transaction.before_commit"])
def test_a_kill_before_the_commit_leaves_the_code_good(desk: Desk, instant: str) -> None:
    """Nothing of the binding is there; the code can still be typed."""
    desk.shows()

    def kill(name: str) -> None:
        if name == instant:
            raise KilledError

    with armed(kill), pytest.raises(KilledError):
        desk.bind()
    assert (desk.told(), desk.marked(), desk.actions()) == ([], [], [])
    assert desk.bind().device.device_id == MAC


def credential(desk: Desk, client_id: str = CLIENT, device_id: str = MAC, name: str = "c1") -> str:
    return issue(KEY, device_id, client_id, desk.school.now, name)


def test_web_knows_a_device_by_its_credential(desk: Desk) -> None:
    """The same as a token of the device: its principal, its scopes, no token row."""
    desk.shows()
    bound = desk.bind()
    principal = desk.who(credential(desk))
    assert (principal.kind, principal.key, principal.id) == ("device", bound.device.device_key, MAC)
    assert principal.scopes == {"sessions:write", "sessions:read"}
    assert principal.token_key is None


def test_web_refuses_what_the_gateway_would(desk: Desk) -> None:
    """Unbound, foreign, forged, expired: 401, and why is not told."""
    with pytest.raises(TokenInvalidError):
        desk.who(credential(desk))
    desk.shows()
    desk.bind()
    good = credential(desk)
    assert desk.who(good)
    forged = issue(DeviceKey(b"x" * 32), MAC, CLIENT, desk.school.now, "c1")
    for bad in (forged, credential(desk, "client-2"), credential(desk, CLIENT, "toy-9"), "edc1."):
        with pytest.raises(TokenInvalidError):
            desk.who(bad)
    desk.school.now += timedelta(days=30)
    with pytest.raises(TokenInvalidError):
        desk.who(good)


def test_revocation_counts_from_the_next_request(desk: Desk) -> None:
    """One credential, all credentials, the device: each is refused at once, on web too."""
    desk.shows()
    desk.bind()
    one, two = credential(desk, name="c1"), credential(desk, name="c2")
    now = desk.school.now
    for _ in range(2):
        desk.work(lambda work: bindings.revoke_credential(work, MAC, "c1", actor=HOST, now=now))
    with pytest.raises(TokenInvalidError):
        desk.who(one)
    assert desk.who(two)
    (revoked,) = desk.told(REVOCATIONS)
    assert isinstance(revoked, RevokedCredential)
    assert desk.marked(REVOCATIONS) == [revoked]
    assert revoked.forget_us > to_us(now + timedelta(days=30))
    desk.school.now += timedelta(seconds=1)
    later = desk.school.now
    desk.work(lambda work: bindings.revoke_credentials(work, MAC, actor=HOST, now=later))
    with pytest.raises(TokenInvalidError):
        desk.who(two)
    three = credential(desk, name="c3")
    assert desk.who(three)
    desk.school.now += timedelta(seconds=1)
    desk.unbind()
    with pytest.raises(TokenInvalidError):
        desk.who(three)
    assert desk.actions()[-3:] == [
        "device.credential_revoked",
        "device.credentials_revoked",
        "device.unbound",
    ]
