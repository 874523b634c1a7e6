"""The token of publishing: what lets a course in, here and at another server.

Two may be set, separated by a comma, while one takes the other's place: both are accepted, the
first is shown to others. Neither is ever logged.
"""

import hashlib
import hmac
from typing import Final

TOKEN_VARIABLE: Final = "ETUDE_COURSEWARE_PUBLISH_TOKEN"  # noqa: S105 - a name, no secret
LEAST_TOKEN_BYTES: Final = 32
_MOST_TOKENS: Final = 2
_PRINTABLE: Final = range(0x21, 0x7F)


class PublishToken:
    """The tokens that an installation was given."""

    def __init__(self, text: str) -> None:
        """Read `new` or `new,old`; one that is too short or no header's makes all unusable."""
        found = [part.strip() for part in text.split(",")]
        self._tokens = found if len(found) <= _MOST_TOKENS and all(map(_is_good, found)) else []

    @property
    def usable(self) -> bool:
        """Whether anything can be published with it."""
        return bool(self._tokens)

    @property
    def shown(self) -> str:
        """What is sent to another server; only where `usable`."""
        return self._tokens[0]

    def accepts(self, shown: str | None) -> bool:
        """Whether a caller showed one of them; takes as long whatever was shown."""
        digest = _digest(shown or "")
        matches = [hmac.compare_digest(_digest(token), digest) for token in self._tokens]
        return any(matches)


def _is_good(token: str) -> bool:
    return len(token) >= LEAST_TOKEN_BYTES and all(ord(letter) in _PRINTABLE for letter in token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
