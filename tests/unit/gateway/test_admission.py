from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from etude.clock import to_us
from etude.gateway.known_devices import FILE, KnownDevices
from etude.people.device_credentials import LIFETIME, DeviceKey, issue
from etude.testing.toy_shop import CLIENT, KEY, MAC, TOY, ToyShop

OTHER = "02:00:00:00:00:02"


@pytest.fixture
def shop(tmp_path: Path) -> ToyShop:
    shop = ToyShop(tmp_path)
    shop.bind(TOY)
    return shop


def test_a_bound_device_is_let_in(shop: ToyShop) -> None:
    """Also one that sends no client id, and again: a credential is not used up."""
    token = shop.token()
    assert shop.door(token) == 101
    assert shop.door(token, client_id="") == 101
    assert shop.door(token) == 101


def test_no_token_or_a_forged_one_is_401(shop: ToyShop) -> None:
    """Nothing, nonsense, another key, a token of web."""
    forged = issue(DeviceKey(b"x" * 32), MAC, CLIENT, shop.clock.now(), "c")
    for token in (None, "test-token", "None", forged, shop.token()[:-1], "etd_0_0", "é"):
        assert shop.door(token) == 401


def test_a_foreign_credential_is_403(shop: ToyShop) -> None:
    """A credential is good for its own device and client id only."""
    token = shop.token()
    assert shop.door(token, device_id=OTHER) == 403
    assert shop.door(token, client_id="somebody-else") == 403


def test_an_expired_credential_is_401_and_the_next_start_brings_another(shop: ToyShop) -> None:
    """30 days after it was issued."""
    token = shop.token()
    shop.clock.advance(LIFETIME.total_seconds())
    assert shop.door(token) == 401
    assert shop.door(shop.token()) == 101


def test_an_unbound_device_is_403(shop: ToyShop) -> None:
    """Its credential is genuine and worth nothing; bound again the old one stays worthless."""
    token = shop.token()
    gone = msgspec.structs.replace(TOY, client_id=None, valid_from_us=to_us(shop.clock.now()) + 1)
    shop.bind(gone)
    assert shop.door(token) == 403
    shop.bind(msgspec.structs.replace(gone, client_id=CLIENT))
    assert shop.door(token) == 403


def test_what_is_issued_after_a_revocation_is_good_whatever_the_clocks_say(shop: ToyShop) -> None:
    """A gateway whose clock is behind web's does not issue what is revoked already."""
    revoked = shop.clock.now() + timedelta(seconds=30)
    shop.bind(msgspec.structs.replace(TOY, valid_from_us=to_us(revoked)))
    assert shop.door(shop.token()) == 101


def test_a_single_credential_is_revoked(shop: ToyShop) -> None:
    """The one that is named, not the next; who is connected with it is told."""
    closed: list[str] = []
    shop.provisioning.on_revoked(closed.append)
    token = shop.token()
    assert shop.door(token) == 101
    shop.revoke("c-999")
    assert closed == []
    shop.revoke("c-001")
    assert closed == [MAC]
    assert shop.door(token) == 403
    assert shop.door(shop.token()) == 101


def test_before_everything_was_told_a_stranger_comes_back(tmp_path: Path, shop: ToyShop) -> None:
    """With a lost cache a genuine credential is 503, not 403: it may well be bound."""
    token = shop.token()
    (tmp_path / FILE).write_bytes(b"damaged")
    shop.provisioning._known = KnownDevices(tmp_path / FILE, shop.clock)
    assert shop.door(token) == 503
    assert shop.door("forged") == 401


def test_the_key_signs_no_other_claims(shop: ToyShop) -> None:
    """A device that is bound elsewhere gets in nowhere with our key's signature alone."""
    token = issue(KEY, OTHER, CLIENT, shop.clock.now(), "c")
    assert shop.door(token, device_id=OTHER) == 403
