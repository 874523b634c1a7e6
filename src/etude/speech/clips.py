"""A clip as a device plays it: Opus packets, encoded once and sent as often as needed."""

import msgspec


class EncodedClip(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A mono clip in Opus packets of one length.

    Attributes:
        packets: raw Opus packets in order, one frame each.
        frame_ms: what each packet lasts, in milliseconds (20, 40, 60 …).
        sample_rate: the rate it was encoded at, in Hz; what the server's hello declares.
        duration_ms: of the audio itself, without the silence that fills the last packet.
    """

    packets: tuple[bytes, ...]
    frame_ms: int
    sample_rate: int
    duration_ms: int

    @property
    def packets_ms(self) -> int:
        """How long the packets last together, in milliseconds."""
        return len(self.packets) * self.frame_ms
