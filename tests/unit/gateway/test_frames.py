import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway.errors import DeviceFrameError, PacketTooLongError
from etude.gateway.frames import BinaryVersion, Packet, PacketKind, binary_version, pack, unpack

PLACE = {"version", "field", "offset", "reason"}
VERSIONS = st.sampled_from(BinaryVersion)


@given(VERSIONS, st.binary(max_size=4000), st.integers(0, 2**40))
def test_what_is_packed_is_unpacked(
    version: BinaryVersion, payload: bytes, timestamp_ms: int
) -> None:
    """Every version carries every packet; only version 2 a time, which wraps around."""
    packet = unpack(version, pack(version, payload, timestamp_ms))
    kept_ms = timestamp_ms % 2**32 if version is BinaryVersion.TIMED else 0
    assert packet == Packet(payload, kept_ms, PacketKind.OPUS)


@given(VERSIONS, st.binary(max_size=64))
def test_any_bytes_are_a_packet_or_a_typed_error(version: BinaryVersion, message: bytes) -> None:
    """Nothing else comes out, whatever comes in; the error names field and place."""
    try:
        payload, named = unpack(version, message).payload, PLACE
    except DeviceFrameError as error:
        payload, named = b"", set(error.params)
    assert len(payload) <= len(message)
    assert named == PLACE


@given(st.sampled_from([BinaryVersion.TIMED, BinaryVersion.SHORT]), st.binary(max_size=99))
def test_a_cut_or_padded_message_is_refused(version: BinaryVersion, payload: bytes) -> None:
    """The stated length is never believed."""
    message = pack(version, payload)
    for wrong in (message[:-1], message + b"x"):
        with pytest.raises(DeviceFrameError):
            unpack(version, wrong)


def test_version_2_byte_for_byte() -> None:
    """Version, type, reserved, time, size: 16 bytes, big-endian."""
    wanted = bytes.fromhex("0002 0000 00000000 0001e240 00000003") + b"abc"
    assert pack(BinaryVersion.TIMED, b"abc", 123_456) == wanted


def test_version_3_byte_for_byte() -> None:
    """Type, reserved, size: 4 bytes, big-endian."""
    assert pack(BinaryVersion.SHORT, b"abc") == bytes.fromhex("00 00 0003") + b"abc"


def test_version_1_is_the_bare_packet() -> None:
    """No header in either direction."""
    assert pack(BinaryVersion.BARE, b"abc") == b"abc"
    assert unpack(BinaryVersion.BARE, b"abc").payload == b"abc"


@pytest.mark.parametrize(
    ("version", "message", "field"),
    [
        (BinaryVersion.TIMED, bytes.fromhex("0003 0000 00000000 00000000 00000000"), "version"),
        (BinaryVersion.TIMED, bytes.fromhex("0002 0007 00000000 00000000 00000000"), "type"),
        (
            BinaryVersion.TIMED,
            bytes.fromhex("0002 0000 00000000 00000000 ffffffff"),
            "payload_size",
        ),
        (BinaryVersion.TIMED, b"\x00\x02", "header"),
        (BinaryVersion.SHORT, bytes.fromhex("09 00 0000"), "type"),
        (BinaryVersion.SHORT, bytes.fromhex("00 00 ffff"), "payload_size"),
        (BinaryVersion.SHORT, b"", "header"),
    ],
)
def test_the_error_names_the_place(version: BinaryVersion, message: bytes, field: str) -> None:
    """The field at which the message breaks."""
    with pytest.raises(DeviceFrameError) as caught:
        unpack(version, message)
    assert caught.value.params["field"] == field


def test_json_inside_a_binary_message_is_told() -> None:
    """Version 2 can carry a JSON text, type 1."""
    message = bytes.fromhex("0002 0001 00000000 00000000 00000002") + b"{}"
    assert unpack(BinaryVersion.TIMED, message) == Packet(b"{}", 0, PacketKind.JSON)


def test_a_packet_over_the_length_field_is_not_packed() -> None:
    """A wrong length would make the device read past its buffer."""
    with pytest.raises(PacketTooLongError):
        pack(BinaryVersion.SHORT, bytes(65_536))
    assert len(pack(BinaryVersion.SHORT, bytes(65_535))) == 65_539


@pytest.mark.parametrize(
    ("value", "version"),
    [
        ("1", 1), ("2", 2), (" 3 ", 3), (1, 1), (3, 3),
        ("4", None), ("", None), (None, None), (True, None), (0, None), ([1], None), ("v1", None),
    ],
)  # fmt: skip
def test_a_version_is_known_or_none(value: object, version: int | None) -> None:
    """Header text and hello number alike; whoever calls falls back to 1."""
    assert binary_version(value) == version
