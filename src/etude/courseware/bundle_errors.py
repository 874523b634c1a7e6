"""Why a bundle is not trusted: the archive, its manifest, its contents."""

from etude.errors import (
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
    UnsupportedError,
)


class BundleUnsafeError(InvalidError):
    """A bundle cannot be trusted; subclasses say why. Parameter `entry` where one is meant."""

    code = "BUNDLE_UNSAFE"


class BundleNotZipError(UnsupportedError):
    """It is no ZIP archive of the plain kind."""

    code = "BUNDLE_NOT_ZIP"


class BundleTooLargeError(TooLargeError):
    """A bundle, or one file in it, is over its limit."""

    code = "BUNDLE_TOO_LARGE"


class BundleTooManyEntriesError(TooLargeError):
    """A bundle has more files than any classroom."""

    code = "BUNDLE_TOO_MANY_ENTRIES"


class BundleTrailingDataError(BundleUnsafeError):
    """There are bytes in front of the archive, between its parts or after its end."""

    code = "BUNDLE_TRAILING_DATA"


class BundleNameError(BundleUnsafeError):
    """An entry's name leads outside, or is none that a bundle has."""

    code = "BUNDLE_NAME"


class BundleNameTwiceError(BundleUnsafeError):
    """Two entries have names that some systems take for one."""

    code = "BUNDLE_NAME_TWICE"


class BundleEntryKindError(BundleUnsafeError):
    """An entry is compressed, encrypted, a link, a folder or a device."""

    code = "BUNDLE_ENTRY_KIND"


class BundleOverlapError(BundleUnsafeError):
    """Entries share bytes, or lie elsewhere than one after the other."""

    code = "BUNDLE_OVERLAP"


class BundleHeadersError(BundleUnsafeError):
    """An entry's headers are not the ones that this format has, so tools may read it two ways."""

    code = "BUNDLE_HEADERS"


class BundleOrderError(BundleUnsafeError):
    """The entries are not sorted by name."""

    code = "BUNDLE_ORDER"


class BundleManifestError(BundleUnsafeError):
    """There is no manifest, or it is not one. Parameter `reason`."""

    code = "BUNDLE_MANIFEST"


class BundleTableError(BundleUnsafeError):
    """The manifest's table of files and the entries are not the same."""

    code = "BUNDLE_TABLE"


class BundleDamagedError(BundleUnsafeError):
    """An entry's bytes are not those of the table."""

    code = "BUNDLE_DAMAGED"


class BundleHashMismatchError(BundleUnsafeError):
    """Declared, registered and recomputed content hash are not the same."""

    code = "BUNDLE_HASH_MISMATCH"


class BundleIdMismatchError(BundleUnsafeError):
    """The bundle is of another courseware."""

    code = "BUNDLE_ID_MISMATCH"


class BundleClassroomError(BundleUnsafeError):
    """The classroom inside cannot be read. Parameter `reason`: a code; the mistakes are parts."""

    code = "BUNDLE_CLASSROOM"


class BundleIncompleteError(BundleUnsafeError):
    """A bundle is not complete; what is missing are parts."""

    code = "BUNDLE_INCOMPLETE"


class BundleFileUnknownError(NotFoundError):
    """There is no such file."""

    code = "BUNDLE_FILE_UNKNOWN"


class BundleFileUnreadableError(UnavailableError):
    """The file of a bundle cannot be read."""

    code = "BUNDLE_FILE_UNREADABLE"
