"""What can go wrong at the command line itself."""

from etude.errors import (
    ConflictError,
    EtudeError,
    InvalidError,
    MalformedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)


class CommandNeedsExtraError(UnavailableError):
    """The command is part of an extra that is not installed; `install` is the line that adds it."""

    code = "COMMAND_NEEDS_EXTRA"


class NotInitialisedError(UnavailableError):
    """The data folder does not exist: nobody has run `etude init` yet, or `ETUDE_DATA` is wrong."""

    code = "NOT_INITIALISED"


class FolderUnusableError(UnavailableError):
    """A folder that the command needs cannot be made or written."""

    code = "FOLDER_UNUSABLE"


class OutputUnwritableError(UnavailableError):
    """Stdout, or the file of a report, cannot be written; what the command did before stands."""

    code = "OUTPUT_UNWRITABLE"


class BackupTargetError(ConflictError):
    """The target of a backup exists already; a backup never overwrites one."""

    code = "BACKUP_TARGET_EXISTS"


class BackupInvalidError(InvalidError):
    """A backup does not hold what it says, so nothing may be restored from it."""

    code = "BACKUP_INVALID"


class BackupOfServerError(UnsupportedError):
    """The database is PostgreSQL, whose own tools copy it; `docs/backup.md` says how."""

    code = "BACKUP_OF_POSTGRESQL"


class DemoFolderTakenError(ConflictError):
    """The folder for the demo holds something that no demo made, and is left alone."""

    code = "DEMO_FOLDER_TAKEN"


class DemoBrokenError(EtudeError):
    """A promise that the demo shows does not hold: a defect of Etude."""

    code = "DEMO_BROKEN"


class ScenarioUnknownError(NotFoundError):
    """There is no scenario of this name, and no file."""

    code = "SCENARIO_UNKNOWN"


class SimulationFailedError(UnavailableError):
    """A simulated device could not connect."""

    code = "SIMULATION_FAILED"


class ClassroomFileNotJsonError(MalformedError):
    """A file given as a classroom or an outline, or the manifest in it, is no JSON object."""

    code = "CLASSROOM_FILE_NOT_JSON"


class BrowserMissingError(UnavailableError):
    """Pages are to be looked at, and this machine has no browser for it."""

    code = "BROWSER_MISSING"


class BrowserFailedError(UnavailableError):
    """The browser did not show the pages."""

    code = "BROWSER_FAILED"
