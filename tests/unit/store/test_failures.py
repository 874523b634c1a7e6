from etude.store.errors import DiskFull
from etude.store.failures import error_code, where


def failing() -> BaseException:
    def deepest() -> None:
        raise ValueError(secret)

    secret = "a child's name"
    try:
        deepest()
    except ValueError as error:
        return error
    raise AssertionError


def test_place_without_words() -> None:
    """A failure is told by its frames, innermost first, and never by its message."""
    told = where(failing())
    assert "test_failures.py" in told
    assert told.index("deepest") < told.index("failing")
    assert "child" not in told


def test_code() -> None:
    """Errors of Etude have their code, others the name of their class."""
    assert error_code(DiskFull(reason="x")) == "DISK_FULL"
    assert error_code(ValueError("words")) == "ValueError"
