"""What can be wrong in a document that a person wrote: one error a kind, with file and line."""

from typing import Final

from etude.documents.reading import Mistake
from etude.errors import InvalidError


class DocumentInvalidError(InvalidError):
    """A document has mistakes; each is a part. Parameters `file` and `mistakes`, their number."""

    code = "DOCUMENT_INVALID"


class DocumentMistakeError(InvalidError):
    """One mistake: parameters `file`, `line` (0 = the whole), `path`, and those of its kind."""

    code = "DOCUMENT_MISTAKE"


class DocumentSyntaxError(DocumentMistakeError):
    """It is not YAML."""

    code = "DOCUMENT_SYNTAX"


class DocumentTooLongError(DocumentMistakeError):
    """It is too long."""

    code = "DOCUMENT_TOO_LONG"


class DocumentTooDeepError(DocumentMistakeError):
    """It is nested too deeply."""

    code = "DOCUMENT_TOO_DEEP"


class DocumentAliasError(DocumentMistakeError):
    """It uses an alias."""

    code = "DOCUMENT_ALIAS"


class DocumentMergeError(DocumentMistakeError):
    """It uses a merge key (`<<`)."""

    code = "DOCUMENT_MERGE"


class DocumentKeyNotTextError(DocumentMistakeError):
    """A key is no text."""

    code = "DOCUMENT_KEY_NOT_TEXT"


class DocumentNoJsonError(DocumentMistakeError):
    """A value is a date or no finite number."""

    code = "DOCUMENT_NO_JSON"


class DocumentUnknownKeyError(DocumentMistakeError):
    """A key is not known here."""

    code = "DOCUMENT_UNKNOWN_KEY"


class DocumentMissingError(DocumentMistakeError):
    """A key is missing."""

    code = "DOCUMENT_MISSING"


class DocumentNotAError(DocumentMistakeError):
    """A value is of another kind."""

    code = "DOCUMENT_NOT_A"


class DocumentNotOneOfError(DocumentMistakeError):
    """A word is none of the known ones."""

    code = "DOCUMENT_NOT_ONE_OF"


class DocumentEmptyError(DocumentMistakeError):
    """A list or mapping is empty."""

    code = "DOCUMENT_EMPTY"


class DocumentOutOfBoundsError(DocumentMistakeError):
    """A value is outside its bounds."""

    code = "DOCUMENT_OUT_OF_BOUNDS"


class DocumentUnknownNameError(DocumentMistakeError):
    """A name refers to nothing in the document."""

    code = "DOCUMENT_UNKNOWN_NAME"


class DocumentTwiceError(DocumentMistakeError):
    """A name is used twice."""

    code = "DOCUMENT_TWICE"


class DocumentRuleError(DocumentMistakeError):
    """A rule that binds several values is broken."""

    code = "DOCUMENT_RULE"


_KINDS: Final[dict[str, type[DocumentMistakeError]]] = {
    "syntax": DocumentSyntaxError,
    "too_long": DocumentTooLongError,
    "too_deep": DocumentTooDeepError,
    "alias": DocumentAliasError,
    "merge": DocumentMergeError,
    "key_not_text": DocumentKeyNotTextError,
    "no_json": DocumentNoJsonError,
    "unknown_key": DocumentUnknownKeyError,
    "missing": DocumentMissingError,
    "not_a": DocumentNotAError,
    "not_one_of": DocumentNotOneOfError,
    "empty": DocumentEmptyError,
    "out_of_bounds": DocumentOutOfBoundsError,
    "unknown_name": DocumentUnknownNameError,
    "twice": DocumentTwiceError,
    "rule": DocumentRuleError,
}


def error_of(mistake: Mistake, file: str) -> DocumentMistakeError:
    """Return the error that says `mistake` of `file`."""
    return _KINDS[mistake.kind](
        file=file, line=mistake.line, path=mistake.path or "/", **mistake.params
    )
