"""HTTP/1.1 as uvicorn reads it, with two bounds of ours.

What is no HTTP is answered with a problem document too, and a caller that opens a connection has a
limited time to say what it wants (a slow trickle of header bytes would hold a connection for ever).
"""

import asyncio
from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from etude import i18n
from etude.gateway.link_messages import PATH
from etude.web.context import RequestContext
from etude.web.errors import RequestMalformedError
from etude.web.problems import MEDIA_TYPE, document

HEAD_S: Final = 20.0
LINK: Final = PATH.encode()


class Protocol(HttpToolsProtocol):
    """One connection of a caller."""

    _head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Begin to wait for the first request's head."""
        super().connection_made(transport)
        self._await_head()

    def on_message_begin(self) -> None:
        """Begin to wait for a later request's head."""
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        """The head is there: the body has limits of its own (`etude.web.front`)."""
        self._forget_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller is gone."""
        self._forget_head()
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        """Whether to speak WebSocket: at one address; elsewhere the wish is passed over.

        A server may do that (RFC 9110 §7.8), and the request is answered as the others are.
        """
        return self.url.partition(b"?")[0] == LINK and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words are for its log
        """Answer what is no HTTP, and end the connection."""
        request_id = RequestContext().id
        body = document(RequestMalformedError(), (), request_id, i18n.DEFAULT_LOCALE)
        status = HTTPStatus.BAD_REQUEST
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"content-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\n"
            f"x-request-id: {request_id}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _await_head(self) -> None:
        self._forget_head()
        self._head_deadline = self.loop.call_later(HEAD_S, self.transport.close)

    def _forget_head(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
