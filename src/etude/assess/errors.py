"""What can go wrong with assessment. Messages: `i18n/*/assess.toml`."""

from etude.errors import EtudeError, InvalidError, NotFoundError, UnavailableError


class MethodUnusableError(UnavailableError):
    """An installed method cannot be loaded."""

    code = "ASSESS_METHOD_UNUSABLE"


class ModelFileDamagedError(EtudeError):
    """The file of a model is not the one that was written: its sha256 differs, or it is cut."""

    code = "ASSESS_MODEL_DAMAGED"


class TableDamagedError(EtudeError):
    """The table of features is not the one that was written."""

    code = "ASSESS_TABLE_DAMAGED"


class TrainingDataUnknownError(NotFoundError):
    """There is no `scores.jsonl` in the folder."""

    code = "ASSESS_DATA_UNKNOWN"


class TrainingDataInvalidError(InvalidError):
    """A line of `scores.jsonl` is not what it has to be."""

    code = "ASSESS_DATA_INVALID"


class TrainingDataFewError(InvalidError):
    """There are too few utterances or speakers to train on and to hold out."""

    code = "ASSESS_DATA_FEW"
