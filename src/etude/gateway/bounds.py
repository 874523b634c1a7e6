"""The bounds of a device's connection: how long, how much, how fast."""

import msgspec


class ConnectionRules(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a connection.

    Attributes:
        hello_s: for the first message; a device gives us as long.
        keep_alive_s: without anything sent, after which the face is sent again: a device takes a
            connection for dead after 120 s without data, and pings do not count.
        idle_s: without a word, a voice, a clip or a task, after which the connection is closed.
        noise_s: the same, where only its microphone is heard: a noisy room is not a lesson.
        look_s: how often these are looked at.
        unsent_bytes: that a slow device may leave in the buffer.
        malformed: messages in a minute that cannot be read.
        messages_per_s, messages_at_once: the bounds of a flood, and how much may come in a burst (a
            device's own queue holds 40).
        bytes_per_s, bytes_at_once: the same in bytes.
    """

    hello_s: float = 10.0
    keep_alive_s: float = 50.0
    idle_s: float = 120.0
    noise_s: float = 1_800.0
    look_s: float = 5.0
    unsent_bytes: int = 65_536
    malformed: int = 30
    messages_per_s: float = 200.0
    messages_at_once: float = 1_000.0
    bytes_per_s: float = 262_144.0
    bytes_at_once: float = 4_194_304.0


class Bucket:
    """Lets `per_s` through on average and `at_once` in a burst."""

    def __init__(self, per_s: float, at_once: float, now_s: float) -> None:
        """Begin full."""
        self._per_s = per_s
        self._most = at_once
        self._left = at_once
        self._seen_s = now_s

    def takes(self, amount: float, now_s: float) -> bool:
        """Take `amount` out; False if there is not as much."""
        self._left = min(self._most, self._left + (now_s - self._seen_s) * self._per_s)
        self._seen_s = now_s
        if amount > self._left:
            return False
        self._left -= amount
        return True
