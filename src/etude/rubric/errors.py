"""What can be wrong with what says how a session is read."""

from etude.errors import InvalidError


class PolarityTableInvalidError(InvalidError):
    """A polarity table breaks its form. Parameter `reason` names the place."""

    code = "POLARITY_TABLE_INVALID"
