"""What a person may say about the broker, and what is refused with its reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.gateway.mqtt import (
    MqttFieldsError,
    MqttTopicError,
    MqttUrlError,
    Topics,
    read_address,
    read_fields,
    read_topics,
)


def test_an_address_has_its_usual_port_and_an_unquoted_password() -> None:
    """`mqtt` means 1883, `mqtts` 8883 with TLS; what a URL must quote is unquoted."""
    plain = read_address("mqtt://broker")
    assert (plain.host, plain.port, plain.tls, plain.username) == ("broker", 1883, False, None)
    full = read_address("mqtts://gate:p%40ss@[::1]:9000")
    assert (full.host, full.port, full.tls) == ("::1", 9000, True)
    assert (full.username, full.password) == ("gate", "p@ss")
    assert "p@ss" not in repr(full)
    assert read_address("mqtts://broker").port == 8883


@pytest.mark.parametrize(
    "url",
    ["mqtt://", "http://broker", "mqtt://broker:x", "mqtt://broker:70000", "mqtt://b/topic", ""],
)
def test_an_address_that_cannot_be_used_is_refused_without_being_shown(url: str) -> None:
    """The error says what is wrong; the value, which may hold a password, stays out of it."""
    with pytest.raises(MqttUrlError) as refused:
        read_address(url)
    assert url not in str(refused.value) or not url


@pytest.mark.parametrize(
    "topic",
    [
        "snlp/ctl",
        "snlp/x{device_id}/ctl",
        "{device_id}/{device_id}",
        "+/{device_id}",
        "#",
        "a" * 200 + "/{device_id}",
    ],
)
def test_a_topic_must_name_the_device_on_one_level(topic: str) -> None:
    """Otherwise one board would get what is for another, or could acknowledge for it."""
    with pytest.raises(MqttTopicError) as refused:
        read_topics("snlp/{device_id}/ctl", topic)
    assert refused.value.params["variable"] == "ETUDE_MQTT_ACK_TOPIC"


@given(st.from_regex(r"[A-Za-z0-9._:@-]{1,40}", fullmatch=True))
def test_a_devices_topic_is_its_own(device_id: str) -> None:
    """The topic of a device has as many levels as the template and names the device."""
    topics = Topics()
    assert topics.of_command(device_id) == f"snlp/{device_id}/ctl"
    assert topics.of_acks() == "snlp/+/ctl/ack"


def test_members_may_have_other_names() -> None:
    """Those that are not named keep theirs."""
    fields = read_fields(" action = cmd, msg_id=id ,")
    assert (fields["action"], fields["msg_id"], fields["payload"]) == ("cmd", "id", "payload")


@pytest.mark.parametrize("text", ["cmd", "command=cmd", "action=", "action=msg_id", "code=msg_id"])
def test_names_that_cannot_be_told_apart_are_refused(text: str) -> None:
    """No unknown member, no empty name, no two members with one name in one message."""
    with pytest.raises(MqttFieldsError):
        read_fields(text)
