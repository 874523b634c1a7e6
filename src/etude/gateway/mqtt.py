"""Actions over an MQTT broker: the way to boards that are not connected (`docs/rules.md 23`).

Topics and the names of the envelope's members are settings, because the board decides them. An
action is published once (QoS 1) and acknowledged by the device with the same `msg_id`; the device
does one `msg_id` once, so it may be published again. A broker that is away is tried again for ever,
and costs nobody anything meanwhile.
"""

import asyncio
import contextlib
import importlib.util
import json
import random
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import msgspec
import structlog

from etude.errors import InvalidError, UnavailableError
from etude.gateway.actions import Action, Payload, to_json
from etude.gateway.control import Ack, Offline, Outcome, Timeout

if TYPE_CHECKING:  # an extra: imported when a broker is configured
    import aiomqtt

COMMAND_TOPIC: Final = "snlp/{device_id}/ctl"
ACK_TOPIC: Final = "snlp/{device_id}/ctl/ack"
ACK_S: Final = 5.0
PUBLISH_S: Final = 5.0
MAX_ACK_BYTES: Final = 4096
MAX_QUEUED: Final = 1000
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
_DEVICE: Final = "{device_id}"
_MEMBERS: Final = ("action", "msg_id", "ts", "payload", "code", "msg")
_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}

log = structlog.get_logger("etude.gateway")


class MqttUrlError(InvalidError):
    """`ETUDE_MQTT_URL` is no address of a broker. Its value is never shown: passwords."""

    code = "MQTT_URL_INVALID"


class MqttTopicError(InvalidError):
    """A topic template cannot be used."""

    code = "MQTT_TOPIC_INVALID"


class MqttFieldsError(InvalidError):
    """The names of the envelope's members cannot be used."""

    code = "MQTT_FIELDS_INVALID"


class MqttNotInstalledError(UnavailableError):
    """A broker is configured, and `etude[mqtt]` is not installed."""

    code = "MQTT_NOT_INSTALLED"


class BrokerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the broker is, and who we are to it. Not in its `repr`: the password."""

    host: str
    port: int
    tls: bool
    username: str | None
    password: str | None

    def __repr__(self) -> str:
        """Name host and port only."""
        return f"BrokerAddress({self.host}:{self.port})"


class Topics(msgspec.Struct, frozen=True, kw_only=True):
    """Where actions go and acknowledgements come from; `{device_id}` stands for one level."""

    command: str = COMMAND_TOPIC
    ack: str = ACK_TOPIC

    def of_command(self, device_id: str) -> str:
        """Return the topic of this device's actions."""
        return self.command.replace(_DEVICE, device_id)

    def of_acks(self, device_id: str = "+") -> str:
        """Return the topic of this device's acknowledgements, or the filter of all."""
        return self.ack.replace(_DEVICE, device_id)


def read_address(url: str) -> BrokerAddress:
    """Read `mqtt://[user:password@]host[:port]` or `mqtts://…`; raises `MqttUrlError`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise MqttUrlError(reason="its port is no number from 1 to 65535") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise MqttUrlError(reason="it names no broker")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise MqttUrlError(reason="nothing may follow the port")
    return BrokerAddress(
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        tls=parts.scheme == "mqtts",
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def read_topics(command: str, ack: str) -> Topics:
    """Check the templates; raises `MqttTopicError`.

    Both must name the device on a level of its own: what goes to one may not reach another, and an
    acknowledgement counts only from where the device may publish.
    """
    for variable, topic in (("ETUDE_MQTT_COMMAND_TOPIC", command), ("ETUDE_MQTT_ACK_TOPIC", ack)):
        if topic.split("/").count(_DEVICE) != 1:
            raise MqttTopicError(variable=variable, reason="{device_id} is one level of it, once")
        if any(each in topic for each in "+#\0") or len(topic) > 200:  # noqa: PLR2004 - far below MQTT's limit
            raise MqttTopicError(variable=variable, reason="no + or #, and at most 200 characters")
    return Topics(command=command, ack=ack)


def read_fields(text: str) -> Mapping[str, str]:
    """Read `action=cmd,msg_id=id`: the names on the wire; raises `MqttFieldsError`."""
    names = {name: name for name in _MEMBERS}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        ours, _, theirs = (each.strip() for each in pair.partition("="))
        if ours not in names or not theirs:
            raise MqttFieldsError(reason=f"'{pair[:40]}' renames none of {', '.join(_MEMBERS)}")
        names[ours] = theirs
    sent, answered = names.keys() - {"code", "msg"}, names.keys() - {"ts", "payload"}
    for together in (sent, answered):
        if len({names[each] for each in together}) < len(together):
            raise MqttFieldsError(reason="two members have one name")
    return names


class MqttBroker:
    """The way over a broker; `run` in a task of its own. Belongs to one event loop."""

    def __init__(
        self,
        address: BrokerAddress,
        topics: Topics | None = None,
        fields: Mapping[str, str] | None = None,
        *,
        identifier: str | None = None,
        ack_s: float = ACK_S,
    ) -> None:
        """Describe it; nothing is connected before `run`.

        Args:
            address: the broker.
            topics: where actions go and acknowledgements come from.
            fields: our names of the envelope's members to the board's.
            identifier: MQTT client id, another for each gateway; None: the broker makes one.
            ack_s: how long a device may take to acknowledge.

        Raises:
            MqttNotInstalledError: `etude[mqtt]` is missing.
        """
        if importlib.util.find_spec("aiomqtt") is None:
            raise MqttNotInstalledError(install="pip install 'etude[mqtt]'")
        self._address = address
        self._topics = topics or Topics()
        self._fields = fields or read_fields("")
        self._identifier = identifier
        self._ack_s = ack_s
        self._client: aiomqtt.Client | None = None
        self._awaited: dict[tuple[str, str], asyncio.Future[Ack]] = {}

    @property
    def up(self) -> bool:
        """Whether the broker is connected."""
        return self._client is not None

    async def run(self) -> None:
        """Stay connected until the task is cancelled."""
        import aiomqtt  # noqa: PLC0415 - an extra, and only where a broker is configured

        pause_s = FIRST_PAUSE_S
        while True:
            try:
                async with self._new_client(aiomqtt) as client:
                    await client.subscribe(self._topics.of_acks(), qos=1)
                    self._client, pause_s = client, FIRST_PAUSE_S
                    log.info("broker up", action="mqtt.up")
                    async for message in client.messages:
                        self._acknowledged(str(message.topic), message.payload)
            except (aiomqtt.MqttError, OSError) as error:
                log.info("broker down", action="mqtt.down", reason=type(error).__name__)
            finally:
                self._client = None
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads, hides nothing

    async def send_action(
        self, device_id: str, action: Action, payload: Payload, msg_id: str
    ) -> Outcome:
        """Publish an action and wait for the device's acknowledgement.

        Without a broker it is `Offline`: nothing was asked of the device. A broker that is lost
        meanwhile may have passed it on: that is a `Timeout`, as is a device that does not answer.
        """
        client, key = self._client, (device_id, msg_id)
        if client is None or any(each in device_id for each in "/+#\0"):
            return Offline()
        waiting = self._awaited.get(key)
        if waiting is None:
            waiting = self._awaited[key] = asyncio.get_running_loop().create_future()
        try:
            await self._publish(client, device_id, self._envelope(action, payload, msg_id))
            async with asyncio.timeout(self._ack_s):
                return await asyncio.shield(waiting)
        except TimeoutError:
            return Timeout()
        finally:
            if self._awaited.get(key) is waiting:
                del self._awaited[key]

    async def _publish(self, client: "aiomqtt.Client", device_id: str, envelope: bytes) -> None:
        import aiomqtt  # noqa: PLC0415 - see `run`

        try:
            topic = self._topics.of_command(device_id)
            await client.publish(topic, envelope, qos=1, timeout=PUBLISH_S)
        except (aiomqtt.MqttError, OSError) as error:
            log.info("not published", action="mqtt.not_published", reason=type(error).__name__)
            raise TimeoutError from error

    def _envelope(self, action: Action, payload: Payload, msg_id: str) -> bytes:
        members: dict[str, Any] = {
            "action": str(action),
            "msg_id": msg_id,
            "ts": int(time.time() * 1000),
            "payload": to_json(payload),
        }
        return msgspec.json.encode({self._fields[name]: value for name, value in members.items()})

    def _acknowledged(self, topic: str, payload: object) -> None:
        """Settle what waits for this acknowledgement; anything else on the topic is passed over."""
        if not isinstance(payload, bytes | bytearray) or len(payload) > MAX_ACK_BYTES:
            return
        with contextlib.suppress(ValueError, RecursionError):
            ack = json.loads(payload)
            if not isinstance(ack, dict):
                return
            msg_id, code = ack.get(self._fields["msg_id"]), ack.get(self._fields["code"], 0)
            if not isinstance(msg_id, str) or not isinstance(code, int) or abs(code) > 2**31 - 1:
                return
            for (device_id, awaited), waiting in self._awaited.items():
                mine = awaited == msg_id and topic == self._topics.of_acks(device_id)
                if mine and not waiting.done():
                    message = str(ack.get(self._fields["msg"]) or "")[:200]
                    waiting.set_result(Ack(code=int(code), message=message))

    def _new_client(self, library: Any) -> "aiomqtt.Client":  # noqa: ANN401 - the module itself
        address = self._address
        client: aiomqtt.Client = library.Client(
            address.host,
            address.port,
            username=address.username,
            password=address.password,
            identifier=self._identifier,
            tls_context=ssl.create_default_context() if address.tls else None,
            timeout=PUBLISH_S,
            keepalive=30,
            max_queued_incoming_messages=MAX_QUEUED,
            max_queued_outgoing_messages=MAX_QUEUED,
        )
        return client
