"""What can go wrong with sound. Messages: `i18n/*/speech.toml`."""

from typing import Final

from etude.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    ThrottledError,
    TooLargeError,
    UnavailableError,
)

INSTALL_LINE: Final = "pip install 'etude[server]'"
SPEECH_INSTALL_LINE: Final = "pip install 'etude[server,speech]'"
SHERPA_INSTALL_LINE: Final = "pip install 'etude[server,speech,sherpa]'"


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


class SpeechExtraMissingError(UnavailableError):
    """A library that recognises, aligns or speaks is not there, or cannot be loaded here."""

    code = "SPEECH_EXTRA_MISSING"


class ModelUnknownError(NotFoundError):
    """No list of models names it."""

    code = "MODEL_UNKNOWN"


class ModelMissingError(UnavailableError):
    """A model is on the list and its files are not on this machine."""

    code = "MODEL_MISSING"


class ModelChangedError(UnavailableError):
    """A model's file is not the one that the list names: damaged, or another release."""

    code = "MODEL_CHANGED"


class ModelListInvalidError(InvalidError):
    """A `models.toml` cannot be read, or an entry lacks what every model must say."""

    code = "MODEL_LIST_INVALID"


class ModelNotFetchableError(ConflictError):
    """The model has no address: it comes with a package, or an operator puts it in place."""

    code = "MODEL_NOT_FETCHABLE"


class ModelFolderError(InvalidError):
    """A folder holds no model of the format that was said, or none that its engine loads."""

    code = "MODEL_FOLDER_UNUSABLE"


class ModelExistsError(ConflictError):
    """The operator's list has another model of this id."""

    code = "MODEL_EXISTS"


class SpeechLanguageError(InvalidError):
    """The engine does not know the language."""

    code = "SPEECH_LANGUAGE_UNSUPPORTED"


class SpeechTextError(InvalidError):
    """There is nothing in the text that can be spoken, or far too much."""

    code = "SPEECH_TEXT_INVALID"


class SpeechServerError(UnavailableError):
    """The server that recognises or speaks gave no usable answer."""

    code = "SPEECH_SERVER_FAILED"


class SpeechBusyError(ThrottledError):
    """Too much waits for the engines already."""

    code = "SPEECH_BUSY"


class SpeechEngineError(UnavailableError):
    """An engine failed in a way that it does not explain; its process lives on."""

    code = "SPEECH_ENGINE_FAILED"


class SpeechWorkerError(UnavailableError):
    """The process of an engine hung, crashed or ran out of memory; another took its place."""

    code = "SPEECH_WORKER_FAILED"


class SpeechClosedError(UnavailableError):
    """The engines are being shut down."""

    code = "SPEECH_CLOSED"
