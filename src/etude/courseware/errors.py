"""What can be wrong with freezing, publishing, the registry and loading.

Findings are parts of `PublishRefusedError`: each has `moduleIndex` (where one is meant) and
`path`, a place in the classroom.
"""

from etude.errors import (
    ConflictError,
    EtudeError,
    GoneError,
    InvalidError,
    MalformedError,
    NotFoundError,
    ThrottledError,
    UnavailableError,
)


class SourceChangedError(ConflictError):
    """A classroom was changed while it was frozen; nothing is published."""

    code = "SOURCE_CHANGED"


class PublishRefusedError(ConflictError):
    """A course cannot be published; every reason is a part. `earliestFailedIndex`: -1 = none."""

    code = "PUBLISH_REFUSED"


class FreezeRefusedError(InvalidError):
    """A classroom cannot be frozen; every reason is a part."""

    code = "FREEZE_REFUSED"


class GateError(ConflictError):
    """A gate of publishing is closed."""

    code = "GATE"


class PublishTokenMissingError(UnavailableError):
    """The installation has no publish token."""

    code = "PUBLISH_TOKEN_NOT_CONFIGURED"


class ModuleSetMismatchError(GateError):
    """Framework and generated modules differ in number or order."""

    code = "MODULE_SET_MISMATCH"


class ModuleNotSucceededError(GateError):
    """A module was not generated."""

    code = "MODULE_NOT_SUCCEEDED"


class ClassroomUnreadableError(GateError):
    """A module's classroom cannot be read. Parameter `reason`, a code."""

    code = "CLASSROOM_UNREADABLE"


class SemanticDriftError(GateError):
    """A classroom says something else than when it was generated."""

    code = "SEMANTIC_DRIFT"


class SourceDriftError(GateError):
    """A classroom is not stored as it was when it was generated."""

    code = "SOURCE_DRIFT"


class ContinuityStaleError(GateError):
    """A module builds on an earlier one that has changed since. `earlierIndex`, `reason`."""

    code = "CONTINUITY_STALE"


class ContinuityUnverifiedError(GateError):
    """It is not known on what a module builds."""

    code = "CONTINUITY_UNVERIFIED"


class FindingError(InvalidError):
    """A part of a classroom cannot be frozen. Parameter `path`."""

    code = "FINDING"


class AgentRosterMissingError(FindingError):
    """There is not exactly one teacher and at least one more."""

    code = "AGENT_ROSTER_MISSING"


class InteractiveHtmlMissingError(FindingError):
    """No scene is an activity with a page."""

    code = "INTERACTIVE_HTML_MISSING"


class InteractiveAssetUnresolvedError(FindingError):
    """A page refers to what cannot be put into it. Parameter `found`."""

    code = "INTERACTIVE_ASSET_UNRESOLVED"


class InteractiveUnsafeError(FindingError):
    """A page reaches for the network, its parent, storage or another page. Parameter `found`."""

    code = "INTERACTIVE_UNSAFE"


class InteractiveTooLargeError(FindingError):
    """A page is too large once everything is in it. Parameter `limit`."""

    code = "INTERACTIVE_TOO_LARGE"


class MediaUnresolvedError(FindingError):
    """A picture, film or sound is no file of the classroom, or not of its kind. `reference`."""

    code = "MEDIA_UNRESOLVED"


class SpeechAudioMissingError(FindingError):
    """Words that are spoken have no sound."""

    code = "SPEECH_AUDIO_MISSING"


class SpeechAudioUrlLeftError(FindingError):
    """Words have the address of a sound beside or instead of a file. Parameter `reference`."""

    code = "SPEECH_AUDIO_URL_LEFT"


class PracticeAudioMissingError(FindingError):
    """A sentence to practise has no sound, or its length is not known."""

    code = "PRACTICE_AUDIO_MISSING"


class PracticeRubricMissingError(FindingError):
    """A lesson to practise has no rubric, or none that can be read. Parameter `reason`."""

    code = "PRACTICE_RUBRIC_MISSING"


class PblRuntimePresentError(FindingError):
    """A project holds what learners did."""

    code = "PBL_RUNTIME_PRESENT"


class BundleStoredMissingError(UnavailableError):
    """The stored bytes of a registered version are gone: restore a backup."""

    code = "BUNDLE_STORED_MISSING"


class CoursewareUnknownError(NotFoundError):
    """There is no such courseware or version that anybody may see."""

    code = "COURSEWARE_UNKNOWN"


class CourseUnpublishedError(NotFoundError):
    """The course was never published, or not in this version."""

    code = "COURSE_UNPUBLISHED"


class ManifestWithdrawnError(GoneError):
    """This version of the course was withdrawn. Parameter `reason`."""

    code = "MANIFEST_WITHDRAWN"


class ManifestUnpinnedError(ConflictError):
    """The course was published by an older system, without pins: publish it again."""

    code = "MANIFEST_UNPINNED"


class LegacyManifestError(InvalidError):
    """The file of an older system's manifest cannot be read. Parameter `reason`."""

    code = "MANIFEST_LEGACY_UNREADABLE"


class PinIncompleteError(MalformedError):
    """Version and content hash come together."""

    code = "PIN_INCOMPLETE"


class PinMalformedError(MalformedError):
    """A part of the pin has not its form. Parameter `part`."""

    code = "PIN_MALFORMED"


class RegistryNotFoundError(NotFoundError):
    """The registry has no such version."""

    code = "REGISTRY_NOT_FOUND"


class RegistryIdentityError(ConflictError):
    """The registry answered for something else than what was asked for."""

    code = "REGISTRY_IDENTITY_MISMATCH"


class PinHashMismatchError(ConflictError):
    """The registry has another hash than the pin."""

    code = "PIN_HASH_MISMATCH"


class DownloadFailedError(EtudeError):
    """The bundle could not be had. Parameter `reason`."""

    code = "BUNDLE_DOWNLOAD_FAILED"
    status = 502


class MaterializeFailedError(InvalidError):
    """A part of the bundle could not be laid out; nothing is kept. Parameter `reason`."""

    code = "MATERIALIZE_FAILED"


class LegacyHashUntrustedError(ConflictError):
    """A bundle of an older system whose bytes are not those that the registry knows."""

    code = "LEGACY_HASH_UNTRUSTED"


class RangeUnsatisfiableError(InvalidError):
    """The asked part lies outside the file. Parameter `size`."""

    code = "RANGE_UNSATISFIABLE"
    status = 416


class TutorNothingToAskError(NotFoundError):
    """The classroom has no such scene, question, discussion or milestone."""

    code = "TUTOR_NOTHING_TO_ASK"


class TutorTooManyError(ThrottledError):
    """Somebody asked a model as often as one may within an hour."""

    code = "TUTOR_TOO_MANY"
