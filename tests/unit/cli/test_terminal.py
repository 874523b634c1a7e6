"""What commands say of what they were given."""

import pytest
import typer

from etude.cli import terminal


def test_a_value_that_there_is_not_is_refused_with_those_there_are() -> None:
    """The message has the value and the choices."""
    terminal.require_known("a", ("a", "b"), "--which")
    with pytest.raises(typer.BadParameter) as caught:
        terminal.require_known("c", ("a", "b"), "--which")
    assert caught.value.message == "c (a | b)"
