"""What can go wrong in the store, as the rest of Etude sees it."""
# ruff: noqa: N818 - each is named after the state it reports, as callers say it

from etude.errors import ConflictError, InvalidError, NotFoundError, TooLargeError, UnavailableError


class StoreUnavailable(UnavailableError):
    """The database cannot be reached or used now; `reason` is its own code, never its data."""

    code = "STORE_UNAVAILABLE"


class StoreBusy(StoreUnavailable):
    """Somebody else held the database, or a lock in it, for longer than the time-out."""

    code = "STORE_BUSY"


class StoreCorrupt(StoreUnavailable):
    """The database file is damaged or is no database: restore a backup."""

    code = "STORE_CORRUPT"


class DiskFull(StoreUnavailable):
    """There is no room to write: free space, or raise the size limit of the process."""

    code = "DISK_FULL"


class SchemaBehind(UnavailableError):
    """The database has an older schema than this version of Etude: upgrade it."""

    code = "SCHEMA_BEHIND"


class SchemaAhead(UnavailableError):
    """The database was upgraded by a newer version of Etude: migrations go forward only."""

    code = "SCHEMA_AHEAD"


class DatabaseUrlError(InvalidError):
    """The database URL is neither `sqlite:///<path>` nor `postgresql://…`."""

    code = "DATABASE_URL"


class ExtraMissing(UnavailableError):
    """A part was asked for whose packages are not installed; `install` is the command."""

    code = "EXTRA_MISSING"


class BlobMissing(NotFoundError):
    """There are no bytes under this digest (or no longer): put them again."""

    code = "BLOB_MISSING"


class BlobCorrupt(UnavailableError):
    """The bytes on the disk do not have the digest that names them: restore them."""

    code = "BLOB_CORRUPT"


class BlobDigestMismatch(ConflictError):
    """The bytes that came do not have the digest they were announced with."""

    code = "BLOB_DIGEST_MISMATCH"


class BlobTooLarge(TooLargeError):
    """More bytes came than a blob may have; nothing of them was kept."""

    code = "BLOB_TOO_LARGE"
