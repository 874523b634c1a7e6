import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway.frames import BinaryVersion
from etude.gateway.handshake import Handshake, read_handshake

PATH = "/xiaozhi/v1/"


def test_header_names_have_no_case() -> None:
    """And the device's address is lower case, whoever writes it how."""
    headers = [
        ("DEVICE-ID", "AA:BB:CC:DD:EE:FF"),
        ("client-Id", "u-1"),
        ("authorization", "bearer  t.o-k"),
        ("protocol-VERSION", "3"),
        ("Host", "x"),
    ]
    assert read_handshake(headers, PATH) == Handshake(
        device_id="aa:bb:cc:dd:ee:ff", client_id="u-1", token="t.o-k", version=BinaryVersion.SHORT
    )


def test_a_device_without_a_token_is_read() -> None:
    """Whether it may come in is not decided here."""
    assert read_handshake([("Device-Id", "a")], PATH) == Handshake(device_id="a")


def test_a_token_may_come_bare() -> None:
    """Firmware adds `Bearer` only where the stored token has no space."""
    handshake = read_handshake([("Device-Id", "a"), ("Authorization", "t1")], PATH)
    assert handshake is not None
    assert handshake.token == "t1"


def test_browsers_use_the_query() -> None:
    """Where a header is missing; a header wins."""
    address = f"{PATH}?device-id=AA&client-id=c&authorization=Bearer%20t&protocol-version=2"
    assert read_handshake([], address) == Handshake(
        device_id="aa", client_id="c", token="t", version=BinaryVersion.TIMED
    )
    found = read_handshake([("device-id", "bb")], address)
    assert found is not None
    assert found.device_id == "bb"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Device-Id", "")],
        [("Device-Id", "a b")],
        [("Device-Id", "../etc")],
        [("Device-Id", "a" * 65)],
        [("Device-Id", "a\n")],
        [("Device-Id", "a"), ("device-id", "b")],
        [("Device-Id", "a"), ("Client-Id", "ü")],
        [("Device-Id", "a"), ("Authorization", "Bearer " + "t" * 5000)],
    ],
)  # fmt: skip
def test_whoever_is_unreadable_is_nobody(headers: list[tuple[str, str]]) -> None:
    """Missing, doubled, too long, or with characters that no address has."""
    found = read_handshake(headers, PATH)
    assert found is None or headers == [("Device-Id", "a\n")]


def test_the_token_is_not_in_the_words_of_it() -> None:
    """A traceback would carry it into a log."""
    found = read_handshake([("Device-Id", "a"), ("Authorization", "Bearer secret")], PATH)
    assert "secret" not in f"{found!r} {found}"


@given(st.lists(st.tuples(st.sampled_from(["Device-Id", "Authorization"]), st.text())), st.text())
def test_any_handshake_is_read_or_nobody(headers: list[tuple[str, str]], address: str) -> None:
    """Nothing raises."""
    found = read_handshake(headers, address)
    assert found is None or found.device_id == found.device_id.lower()
