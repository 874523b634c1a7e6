"""Logs of the long-running commands: structured, and nothing private in them."""

import errno
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from etude.cli import logs

TOKEN = "etd_0123456789abcdef_" + "ab" * 32


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """Where the lines go; the configuration of the process is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure("info", "json", process="test", stream=stream)
    yield stream
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_one_json_object(out: io.StringIO) -> None:
    """With its action, level, time in UTC and the process it comes from; debug is left out."""
    log = structlog.get_logger()
    log.info("hello\nworld", action="test.said", number=3)
    log.debug("quiet", action="test.quiet")
    (line,) = lines(out)
    assert line["action"] == "test.said"
    assert (line["level"], line["process"], line["number"]) == ("info", "test", 3)
    assert line["timestamp"].endswith("Z")


class FullDisk(io.StringIO):
    """Takes nothing."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, text)

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_log_that_cannot_be_written_stops_nobody(out: io.StringIO) -> None:
    """The disk of the logs is full, or nobody reads them: a lesson's clock goes on."""
    del out
    logs.configure("info", "json", process="test", stream=FullDisk())
    structlog.get_logger().error("said to nobody", action="test.said")


def test_a_token_never_gets_in(out: io.StringIO) -> None:
    """Wherever it stands: in the text, in a value, inside a list or a header."""
    structlog.get_logger().warning(
        f"refused {TOKEN}",
        action="test.refused",
        header=f"Bearer {TOKEN}",
        deep={"list": [TOKEN, ("x", "bearer abc.def")]},
    )
    assert TOKEN not in out.getvalue()
    assert "abc.def" not in out.getvalue()
    assert lines(out)[0]["deep"]["list"][0] == logs.MASK


def test_an_exception_is_told_without_its_words(out: io.StringIO) -> None:
    """Type and place are kept, the text is not: it may quote a learner."""
    try:
        int("Xiao Ming")
    except ValueError:
        structlog.get_logger().exception("failed", action="test.failed")
    (line,) = lines(out)
    assert line["error"] == "ValueError"
    assert "test_logs.py" in line["where"][-1]
    assert "Xiao Ming" not in out.getvalue()


def test_other_libraries_are_cut_to_their_template(out: io.StringIO) -> None:
    """Their arguments and further lines stay out; their infos too."""
    library = logging.getLogger("some.package")
    library.warning("row %s is odd", "Xiao Ming")
    library.info("chatter")
    try:
        int("Xiao Ming")
    except ValueError:
        library.exception("broken\nwith more of %s", "Xiao Ming")
    first, second = lines(out)
    assert (first["library"], first["event"]) == ("some.package", "row %s is odd")
    assert (second["event"], second["error"]) == ("broken", "ValueError")
    assert "Xiao Ming" not in out.getvalue()


def test_a_person_at_a_terminal_gets_plain_lines() -> None:
    """`console` is for reading; a token stays out of it as well."""
    stream = io.StringIO()
    logs.configure("info", "console", process="test", stream=stream)
    structlog.get_logger().info("hello", action="test.said", shown=TOKEN)
    structlog.reset_defaults()
    assert "hello" in stream.getvalue()
    assert TOKEN not in stream.getvalue()
