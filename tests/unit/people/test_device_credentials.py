import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.people.device_credentials import (
    LIFETIME,
    MAX_AHEAD,
    DeviceKey,
    DeviceKeys,
    issue,
    read_keys,
    verify,
)
from etude.people.errors import (
    DeviceCredentialExpiredError,
    DeviceCredentialInvalidError,
    DeviceKeyMissingError,
)

NOW = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)
KEY = DeviceKey(b"k" * 32)
OTHER = DeviceKey(b"o" * 32)
KEYS = DeviceKeys(KEY)
TOY = ("02:00:00:00:00:01", "5c9d3f0e-2f4e-4ad6-8c55-1f2a7f6f0a01")


def made(key: DeviceKey = KEY, at: datetime = NOW) -> str:
    return issue(key, *TOY, at, "c-1")


def test_what_was_issued_is_verified() -> None:
    """Every claim comes back, and the text fits a header without a space."""
    text = made()
    claims = verify(KEYS, text, NOW)
    assert (claims.device_id, claims.client_id, claims.id) == (*TOY, "c-1")
    assert claims.expires_at == NOW + LIFETIME
    assert " " not in text
    assert len(text) < 400


@given(
    device=st.text(min_size=1, max_size=128),
    client=st.text(min_size=1, max_size=128).filter(lambda text: len(text.encode()) < 200),
)
def test_any_id_survives(device: str, client: str) -> None:
    """Ids of any characters come back as they were, or the text is too long to be accepted."""
    text = issue(KEY, device, client, NOW, "c")
    if len(text) <= 1024:
        claims = verify(KEYS, text, NOW)
        assert (claims.device_id, claims.client_id) == (device, client)


@given(place=st.integers(0, len(made()) - 1), character=st.sampled_from("AQgw_-.09é\x00"))
def test_any_changed_character_is_seen(place: int, character: str) -> None:
    """A credential with one other character is no credential."""
    text = made()
    forged = text[:place] + character + text[place + 1 :]
    if forged != text:
        with pytest.raises(DeviceCredentialInvalidError):
            verify(KEYS, forged, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "edc1.",
        "edc1..",
        "edc1.W10.x",
        "edc1.bnVsbA.x",
        "etd_0_0",
        "x" * 5000,
        "edc1." + "A" * 9,
    ],
)
def test_what_is_no_credential_is_refused(text: str) -> None:
    """Texts of every other form are refused without a traceback."""
    with pytest.raises(DeviceCredentialInvalidError):
        verify(KEYS, text, NOW)


def test_claims_cannot_be_exchanged() -> None:
    """The signature of one device does not serve for the claims of another."""
    _, claims, signature = made().split(".")
    fields = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    fields[1] = "02:00:00:00:00:02"
    other = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
    with pytest.raises(DeviceCredentialInvalidError):
        verify(KEYS, f"edc1.{other}.{signature}", NOW)


def test_it_ends_when_its_time_is_over() -> None:
    """Good until just before the end, and told apart from a forged one afterwards."""
    text = made()
    assert verify(KEYS, text, NOW + LIFETIME - timedelta(microseconds=1))
    with pytest.raises(DeviceCredentialExpiredError):
        verify(KEYS, text, NOW + LIFETIME)


def test_a_clock_that_was_set_back_does_no_harm() -> None:
    """A day ahead is taken, more is not."""
    assert verify(KEYS, made(at=NOW + MAX_AHEAD), NOW)
    with pytest.raises(DeviceCredentialInvalidError):
        verify(KEYS, made(at=NOW + MAX_AHEAD + timedelta(seconds=1)), NOW)


def test_a_key_is_changed_without_a_gap() -> None:
    """While the old key is accepted its credentials are good; removed, they are not."""
    old = made(OTHER)
    assert verify(DeviceKeys(KEY, [OTHER]), old, NOW).key_id == OTHER.id
    with pytest.raises(DeviceCredentialInvalidError):
        verify(KEYS, old, NOW)


def test_keys_never_show() -> None:
    """A key in a log line or traceback is its id."""
    assert "kkk" not in repr(KEY) + repr(KEYS)
    assert KEY.id in repr(KEYS)


def test_keys_are_read_with_the_older_ones(tmp_path: Path) -> None:
    """`device-token.key` signs, `device-token.<name>.key` is accepted."""
    (tmp_path / "device-token.key").write_bytes(KEY.secret)
    (tmp_path / "device-token.2025.key").write_bytes(OTHER.secret)
    keys = read_keys(tmp_path)
    assert keys.signing == KEY
    assert keys.named(OTHER.id) == OTHER


@pytest.mark.parametrize("content", [None, b"", b"short"])
def test_a_key_that_is_none_is_named(tmp_path: Path, content: bytes | None) -> None:
    """A missing or damaged key stops the start with its path."""
    if content is not None:
        (tmp_path / "device-token.key").write_bytes(content)
    with pytest.raises(DeviceKeyMissingError) as caught:
        read_keys(tmp_path)
    assert caught.value.params["key"] == str(tmp_path / "device-token.key")
