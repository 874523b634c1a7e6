import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway.errors import DeviceMessageTooLongError
from etude.gateway.frames import BinaryVersion
from etude.gateway.messages import (
    LONGEST_DOWNLINK_BYTES,
    Abort,
    AudioParams,
    Downlink,
    Hello,
    ListenDetect,
    ListenStart,
    ListenStop,
    Mcp,
    Nothing,
    read_message,
)
from etude.gateway.ports import ListenMode

FIRMWARE_HELLO = {
    "type": "hello",
    "version": 3,
    "transport": "websocket",
    "features": {"mcp": True, "aec": True},
    "audio_params": {
        "format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": 60,
    },
}  # fmt: skip


@pytest.fixture
def downlink() -> Downlink:
    return Downlink("s-1")


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (FIRMWARE_HELLO, Hello(version=BinaryVersion.SHORT, mcp=True)),
        ({"type": "hello"}, Hello()),
        ({"type": "hello", "version": "2"}, Hello(version=BinaryVersion.TIMED)),
        ({"type": "hello", "version": 9, "features": [], "audio_params": 5}, Hello()),
        ({"type": "hello", "features": {"mcp": "yes"}}, Hello()),
        (
            {"type": "hello", "audio_params": {"frame_duration": 20, "sample_rate": "x"}},
            Hello(audio=AudioParams(sample_rate=16_000, frame_ms=20)),
        ),
        (
            {"type": "listen", "state": "start", "mode": "realtime"},
            ListenStart(ListenMode.REALTIME),
        ),
        ({"type": "listen", "state": "start"}, ListenStart(ListenMode.AUTO)),
        ({"type": "listen", "state": "start", "mode": ["auto"]}, ListenStart(ListenMode.AUTO)),
        ({"type": "listen", "state": "stop"}, ListenStop()),
        ({"type": "listen", "state": "detect", "text": "你好"}, ListenDetect("你好")),
        ({"type": "abort", "reason": "wake_word_detected"}, Abort("wake_word_detected")),
        ({"type": "abort"}, Abort("")),
        ({"type": "abort", "reason": None}, Abort("")),
        ({"type": "mcp", "payload": {"id": 1}}, Mcp({"id": 1})),
    ],
)
def test_a_message_is_read(message: dict[str, Any], read: object) -> None:
    """With whatever of it is usable, and firmware's own values for the rest."""
    assert read_message(json.dumps(message)) == read


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"type":"listen","state":"detect","text":"say "hi" now"}', Nothing.BROKEN_JSON),
        ("hello", Nothing.BROKEN_JSON),
        ("", Nothing.BROKEN_JSON),
        ("[" * 100_000, Nothing.BROKEN_JSON),
        ("1" * 5_000, Nothing.BROKEN_JSON),
        ('{"type":1e999}', Nothing.BROKEN_JSON),
        ("[]", Nothing.NO_OBJECT),
        ("null", Nothing.NO_OBJECT),
        ("{}", Nothing.NO_TYPE),
        ('{"type":7}', Nothing.NO_TYPE),
        ('{"type":"listen"}', Nothing.WRONG_FIELD),
        ('{"type":"listen","state":"detect"}', Nothing.WRONG_FIELD),
        ('{"type":"listen","state":"detect","text":5}', Nothing.WRONG_FIELD),
        ('{"type":"listen","state":{}}', Nothing.WRONG_FIELD),
        ('{"type":"mcp","payload":"x"}', Nothing.WRONG_FIELD),
        ('{"type":"iot","descriptors":[]}', Nothing.NOT_OURS),
        ('{"type":"ping"}', Nothing.NOT_OURS),
        ('{"type":"goodbye"}', Nothing.NOT_OURS),
        ('{"type":"server","action":"restart"}', Nothing.NOT_OURS),
    ],
)
def test_what_says_nothing_says_why(text: str, why: Nothing) -> None:
    """And only what is broken counts as malformed: forks have kinds of their own."""
    assert read_message(text) is why
    assert why.malformed is (why is not Nothing.NOT_OURS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KINDS = st.sampled_from(["hello", "listen", "abort", "mcp", "iot"])
NAMES = st.sampled_from(["state", "mode", "text", "version", "features", "audio_params", "payload"])


@given(KINDS, st.dictionaries(NAMES, JSON | st.sampled_from(["start", "stop", "detect"])))
def test_wrong_types_never_raise(kind: str, fields: dict[str, Any]) -> None:
    """Any value in any field is read or ignored."""
    read_message(json.dumps({"type": kind, **fields}))


@given(st.text() | st.binary())
def test_any_text_never_raises(text: str | bytes) -> None:
    """Not even what is no UTF-8."""
    read_message(text)


def test_the_hello_has_all_that_clients_need(downlink: Downlink) -> None:
    """Firmware crashes without `transport`, others refuse without session or audio parameters."""
    assert json.loads(downlink.hello(AudioParams(), BinaryVersion.SHORT)) == {
        "type": "hello",
        "session_id": "s-1",
        "version": 3,
        "transport": "websocket",
        "audio_params": {
            "format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60,
        },
    }  # fmt: skip


def test_every_message_carries_the_session(downlink: Downlink) -> None:
    """None goes out without it."""
    messages = [
        downlink.tts_start,
        downlink.tts_stop,
        downlink.hello(AudioParams(), BinaryVersion.BARE),
        downlink.stt("a"),
        downlink.sentence_start("b"),
        downlink.llm("happy"),
        downlink.mcp({"id": 1}),
        downlink.reboot(),
        downlink.alert("s", "m", "sad"),
        downlink.custom({"x": 1}),
    ]
    assert {json.loads(message)["session_id"] for message in messages} == {"s-1"}
    assert [json.loads(message)["type"] for message in messages] == [
        "tts", "tts", "hello", "stt", "tts", "llm", "mcp", "system", "alert", "custom",
    ]  # fmt: skip


def test_an_alert_has_three_texts(downlink: Downlink) -> None:
    """Firmware ignores it otherwise."""
    alert = json.loads(downlink.alert("low", "battery", "sad"))
    assert (alert["status"], alert["message"], alert["emotion"]) == ("low", "battery", "sad")


@given(st.text(st.characters(), max_size=3000) | st.text("\x00𝄞\ud800", min_size=2000))
def test_no_shown_text_is_too_long_for_a_device(text: str) -> None:
    """A long text is cut; halves of surrogate pairs are replaced."""
    downlink = Downlink("s" * 36)
    for message in (downlink.stt(text), downlink.sentence_start(text), downlink.llm("sad", text)):
        assert len(message.encode()) <= LONGEST_DOWNLINK_BYTES


def test_arguments_that_are_too_long_are_an_error(downlink: Downlink) -> None:
    """They cannot be cut, and would exhaust the device."""
    with pytest.raises(DeviceMessageTooLongError) as caught:
        downlink.mcp({"params": "x" * 9000})
    assert caught.value.params["type"] == "mcp"
