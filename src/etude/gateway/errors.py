"""What can go wrong between the gateway and a device. Messages: `i18n/*/gateway.toml`."""

from etude.errors import (
    ConflictError,
    InvalidError,
    MalformedError,
    ThrottledError,
    TooLargeError,
    UnavailableError,
)


class DeviceFrameError(MalformedError):
    """A binary message is not what its protocol version says; `field` is where it breaks."""

    code = "DEVICE_FRAME_INVALID"


class PacketTooLongError(TooLargeError):
    """An Opus packet is longer than the length field of the protocol version can say."""

    code = "DEVICE_PACKET_TOO_LONG"


class DeviceMessageTooLongError(TooLargeError):
    """A message is longer than a device is able to take."""

    code = "DEVICE_MESSAGE_TOO_LONG"


class ClipFormatError(InvalidError):
    """A clip is encoded otherwise than the server's hello has declared to the device."""

    code = "CLIP_FORMAT_DIFFERS"


class DevicePortError(InvalidError):
    """The address for device sockets cannot be listened on."""

    code = "DEVICE_PORT_UNUSABLE"


class ToyQuotaError(ThrottledError):
    """Nothing is left of what a toy may use of a model, or web cannot say what is."""

    code = "TOY_QUOTA_SPENT"


class GatewayRunningError(ConflictError):
    """Another gateway works with this data folder; each needs one of its own."""

    code = "GATEWAY_RUNNING"


class GatewayFolderError(UnavailableError):
    """The gateway's folder cannot be read or written; `reason` is the system's."""

    code = "GATEWAY_FOLDER_UNUSABLE"
