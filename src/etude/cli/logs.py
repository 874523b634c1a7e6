"""Logs of the long-running commands: structured lines on stderr, and nothing private in them.

Every line of ours has an `action` that does not change. A token, a header, a learner's name, words
or id never gets in: lines carry code words, surrogate keys and route templates; the text of an
exception is left out (its type and place stay); other libraries' lines are cut to their template.
As a last net, anything that looks like a token is masked.
"""

import contextlib
import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Final, TextIO, TypeAlias, cast

import msgspec
import structlog

Line: TypeAlias = MutableMapping[str, Any]
Render: TypeAlias = structlog.typing.Processor

TOKEN: Final = re.compile(r"etd_[0-9A-Za-z_.-]+|(?i:bearer)\s+\S+")
MASK: Final = "[token]"
FOREIGN_CHARACTERS: Final = 200


def configure(
    level: str = "info",
    style: str = "auto",
    *,
    process: str,
    stream: TextIO | None = None,
) -> None:
    """Send every log line of this process to `stream` (stderr), as JSON or for a person.

    Args:
        level: the least serious lines that are written (`debug`, `info`, `warning`, `error`).
        style: `json` or `console`; `auto` is `console` on a terminal and `json` elsewhere.
        process: what this process is (`web`, `worker`, `serve`); a member of each line.
        stream: where lines go.
    """
    out = stream or sys.stderr
    console = style == "console" or (style == "auto" and out.isatty())
    processors = _processors(process, console=console, colours=out.isatty())
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Lossy(out))),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Foreign()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


class _Lossy:
    """A stream that loses what cannot be written.

    The disk of the logs may be full, or whoever reads them gone: no lesson stops for that, and no
    request fails.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed
            self._out.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._out.flush()


def _processors(process: str, *, console: bool, colours: bool) -> list[Render]:
    def name_process(_: object, __: str, line: Line) -> Line:
        line["process"] = process
        return line

    render: Render = structlog.dev.ConsoleRenderer(colors=colours) if console else _as_json
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        name_process,
        without_exception_text,
        mask_tokens,
        render,
    ]


def without_exception_text(_: object, __: str, line: Line) -> Line:
    """Replace `exc_info` by the exception's type and where it was raised."""
    found = line.pop("exc_info", None)
    line.pop("stack_info", None)
    error = sys.exc_info()[1] if found is True else found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        line["error"] = type(error).__qualname__
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        line["where"] = [
            f"{'/'.join(f.filename.split('/')[-3:])}:{f.lineno} {f.name}" for f in frames
        ]
    return line


def mask_tokens(_: object, __: str, line: Line) -> Line:
    """Mask whatever looks like a token, at any depth: nothing should, so this is the last net."""
    for key, value in line.items():
        line[key] = _masked(value)
    return line


def _masked(value: object) -> object:
    if isinstance(value, str):
        return TOKEN.sub(MASK, value)
    if isinstance(value, dict):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner) for inner in value]
    return value


def _as_json(_: object, __: str, line: Line) -> str:
    return msgspec.json.encode(line, enc_hook=repr).decode()


class _Foreign(logging.Handler):
    """Passes on the lines of other libraries: who said it, how serious, and its template's start.

    The arguments of such a line, and what follows its first line, may hold anything.
    """

    def emit(self, record: logging.LogRecord) -> None:
        first = str(record.msg).partition("\n")[0][:FOREIGN_CHARACTERS]
        structlog.get_logger(record.name).log(
            record.levelno,
            first,
            action="library.said",
            library=record.name,
            exc_info=record.exc_info,
        )
