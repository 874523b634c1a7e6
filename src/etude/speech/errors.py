"""What can go wrong with sound. Messages: `i18n/*/speech.toml`."""

from typing import Final

from etude.errors import InvalidError, NotFoundError, TooLargeError, UnavailableError

INSTALL_LINE: Final = "pip install 'etude[server]'"


class SoundLibraryMissingError(UnavailableError):
    """A library that sound needs is not there, or cannot be loaded on this machine."""

    code = "SOUND_LIBRARY_MISSING"


class OpusPacketError(InvalidError):
    """The bytes are no Opus packet; the decoder goes on with the next one."""

    code = "OPUS_PACKET_INVALID"


class OpusFormatError(InvalidError):
    """A sample rate, a frame length or an amount of samples that Opus has not (RFC 6716 §2)."""

    code = "OPUS_FORMAT_INVALID"


class AudioUnknownError(NotFoundError):
    """There is no such audio file."""

    code = "AUDIO_UNKNOWN"


class AudioUnreadableError(InvalidError):
    """The file is no audio that can be read: damaged, or in another format than its name says."""

    code = "AUDIO_UNREADABLE"


class AudioEmptyError(InvalidError):
    """The file has a header and not one sample."""

    code = "AUDIO_EMPTY"


class AudioTooLongError(TooLargeError):
    """The audio is longer, or its file larger, than a clip may be."""

    code = "AUDIO_TOO_LONG"
