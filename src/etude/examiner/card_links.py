"""The address of a summary card: nobody can guess it, and the database does not know it.

An address is derived from the card's id with a key file of the installation, so that the report can
name it again although only its hash is stored.
"""

import base64
import hmac
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from etude.examiner.repository import CardRow

PATH: Final = "/cards/"
_PURPOSE: Final = b"etude summary card\0"


class CardLinks:
    """Makes and finds addresses. Never shows the keys."""

    def __init__(self, base_url: str, keys: Sequence[bytes] = ()) -> None:
        """Make addresses below `base_url` with the first of `keys`; older ones are still known.

        Without a key an address is random: then no report can name it again.
        """
        self._base_url = base_url
        self._keys = tuple(keys)

    def token(self, card_id: str) -> str:
        """Return the secret end of a new card's address: 43 characters, 256 bits."""
        return _derived(self._keys[0], card_id) if self._keys else secrets.token_urlsafe(32)

    def url(self, token: str) -> str:
        """Return the whole address."""
        return f"{self._base_url}{PATH}{token}"

    def url_of(self, card: CardRow) -> str | None:
        """Return the address of a stored card, if one of the keys leads to it."""
        tokens = (_derived(key, card.card_id) for key in self._keys)
        found = next((one for one in tokens if token_hash(one) == card.token_sha256), None)
        return None if found is None else self.url(found)


def token_hash(token: str) -> str:
    """Return what is stored of an address."""
    return sha256(token.encode()).hexdigest()


def _derived(key: bytes, card_id: str) -> str:
    digest = hmac.digest(key, _PURPOSE + card_id.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
