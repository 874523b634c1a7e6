"""A server that recognises or speaks, in the form that OpenAI gave it and many keep."""

from typing import Final, Self

import httpx2
import msgspec

from etude.net import HttpClient, NetworkFault, Reply, Timeouts
from etude.speech.errors import SpeechServerError

MOST_ANSWER_BYTES: Final = 32 * 1024 * 1024
# Together less than the pool waits, so that a slow server is told as one.
_TIMEOUTS: Final = Timeouts(connect_s=5.0, silence_s=25.0, answer_s=25.0)
_OK: Final = 200
_FIRST_REDIRECT: Final = 300


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is.

    Attributes:
        url: its address up to and with `/v1`.
        model: which of its models.
        voice: which of its voices; recognition needs none.
        api_key: sent as a bearer token; empty = none. Never shown.
    """

    url: str
    model: str
    voice: str = ""
    api_key: str = ""

    def __repr__(self) -> str:
        """Say all but the key."""
        return f"ServerOptions(url={self.url!r}, model={self.model!r}, voice={self.voice!r})"


class SpeechServer:
    """One server, asked by one thread. No retry: whoever waits decides. Close it.

    Args:
        options: where it is.
        wire: what stands in for the network in a test.
        timeouts: how long to wait.

    Raises:
        SpeechServerError: address or key cannot work.
    """

    def __init__(
        self,
        options: ServerOptions,
        *,
        wire: httpx2.BaseTransport | None = None,
        timeouts: Timeouts = _TIMEOUTS,
    ) -> None:
        """Check address and key; connects at the first request."""
        self.options = options
        try:
            self._http = HttpClient(
                options.url,
                bearer=options.api_key or None,
                timeouts=timeouts,
                wire=wire,
                most_answer_bytes=MOST_ANSWER_BYTES,
            )
        except NetworkFault as fault:
            raise self._fault(fault) from fault

    def post(self, path: str, body: bytes, content_type: str) -> Reply:
        """Ask.

        Raises:
            SpeechServerError: there was no answer, or one that says no.
        """
        try:
            reply = self._http.send("POST", path, body, {"Content-Type": content_type})
        except NetworkFault as fault:
            raise self._fault(fault) from fault
        if not _OK <= reply.status < _FIRST_REDIRECT:
            # Its words may repeat what was sent: only the status is told.
            raise self.unusable(reason=f"HTTP {reply.status}")
        return reply

    def unusable(self, reason: str) -> SpeechServerError:
        """Return the error for an answer that came and cannot be used."""
        return SpeechServerError(server=self.options.url, kind="answer", reason=reason)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `close`."""
        self.close()

    def _fault(self, fault: NetworkFault) -> SpeechServerError:
        return SpeechServerError(server=self.options.url, kind=str(fault.kind), reason=fault.reason)
