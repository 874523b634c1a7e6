"""The server that courses are published to, as who publishes sees it.

Only the configured address is asked, and no redirect is followed: the token goes nowhere else.
Whatever the server answers becomes a typed error here; reasons that it lists keep their own codes.
"""

from typing import Any, Final

import httpx2
import msgspec

from etude.courseware import bundle_errors, errors, remote_errors
from etude.courseware.errors import CourseUnpublishedError, PublishRefusedError
from etude.courseware.publish_token import PublishToken
from etude.courseware.remote_errors import (
    PublicUrlMissingError,
    PublishServerFailedError,
    PublishServerReasonError,
    PublishServerStrangeError,
    PublishServerTokenError,
    PublishServerUnreachableError,
)
from etude.courseware.sent_body import SentBody
from etude.courseware.submission import PATH, WithdrawalSent, read_problem, withdraw_path
from etude.errors import EtudeError
from etude.net import HttpClient, NetworkFault, Reply, Streamed, Timeouts

TIMEOUTS: Final = Timeouts(connect_s=10.0, silence_s=120.0, answer_s=60.0)
_OK: Final = 200
_NO_CONTENT: Final = 204
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_REDIRECTS: Final = range(300, 400)
_LONGEST: Final = 500
_SHOWN_AS_THEY_ARE: Final = frozenset({CourseUnpublishedError, PublicUrlMissingError})


class PublishServer:
    """One server. Every call blocks, and opens its own connection."""

    def __init__(
        self, address: str, token: PublishToken, wire: httpx2.BaseTransport | None = None
    ) -> None:
        """Speak to `address`, from the settings.

        Args:
            address: the server's base address.
            token: a usable one.
            wire: what stands in for the network in a test.
        """
        self.address = address.rstrip("/")
        self._token = token
        self._wire = wire

    def ask_first(self, size: int = 0) -> None:
        """Ask for token and room before hundreds of megabytes are on their way.

        Raises:
            PublishServerError: its subclasses say what is wrong.
        """
        reply = self._request("GET", f"{PATH}?bytes={size}", b"", {})
        if reply.status != _OK:
            raise self.error_of(reply)
        if "formatVersion" not in read_problem(reply.body):
            raise self._strange(reply, "not Etude")

    def submit(self, body: SentBody) -> bytes:
        """Send a publication; return the receipt, unread.

        Raises:
            PublishRefusedError: gates are closed there; every failure is a part.
            PublishServerError: its subclasses say what is wrong.
            SourceChangedError, PublishCancelledError: the body ended itself.
        """
        reply = self._request("POST", PATH, body.streamed(), {"Content-Type": body.content_type})
        if reply.status != _OK:
            raise self.error_of(reply)
        return reply.body

    def withdraw(self, course_id: str, version: int, reason: str) -> None:
        """Take a version of a course away from everybody.

        Raises:
            CourseUnpublishedError: there is no such version.
            PublishServerError: its subclasses say what is wrong.
        """
        body = msgspec.json.encode(WithdrawalSent(reason=reason))
        path = withdraw_path(course_id, version)
        reply = self._request("POST", path, body, {"Content-Type": "application/json"})
        if reply.status != _NO_CONTENT:
            raise self.error_of(reply)

    def error_of(self, reply: Reply) -> EtudeError:
        """Return what an answer other than the wanted one means."""
        problem = read_problem(reply.body)
        code = str(problem.get("code", ""))[:_LONGEST]
        if reply.status == _UNAUTHORIZED:
            return PublishServerTokenError(server=self.address)
        if reply.status in _REDIRECTS:
            return self._strange(reply, "redirect")
        if code == PublishRefusedError.code:
            return self._refused(problem)
        known = _KNOWN.get(code)
        if known in _SHOWN_AS_THEY_ARE:
            return known(**_params(problem))
        if not code or code == "ROUTE_NOT_FOUND" or reply.status in {_FORBIDDEN, _NOT_FOUND}:
            return self._strange(reply, code or "not Etude")
        return PublishServerFailedError(
            server=self.address,
            httpStatus=reply.status,
            remoteCode=code,
            reason=str(problem.get("detail", ""))[:_LONGEST],
        )

    def _refused(self, problem: dict[str, Any]) -> PublishRefusedError:
        listed = problem.get("errors")
        parts = [self._part(one) for one in (listed if isinstance(listed, list) else [])]
        return PublishRefusedError(
            *parts,
            failures=len(parts),
            earliestFailedIndex=int(problem.get("earliestFailedIndex", -1)),
        )

    def _part(self, listed: Any) -> EtudeError:  # noqa: ANN401 - any JSON
        found = listed if isinstance(listed, dict) else {}
        code = str(found.get("code", ""))[:_LONGEST]
        params = _params(found)
        if code in _KNOWN:
            return _KNOWN[code](**params)
        index = params.get("moduleIndex")
        more = {} if index is None else {"moduleIndex": index}
        reason = str(found.get("message", ""))[:_LONGEST]
        return PublishServerReasonError(server=self.address, remoteCode=code, reason=reason, **more)

    def _strange(self, reply: Reply, reason: str) -> PublishServerStrangeError:
        return PublishServerStrangeError(
            server=self.address, httpStatus=reply.status, reason=reason
        )

    def _request(
        self, method: str, path: str, body: bytes | Streamed, headers: dict[str, str]
    ) -> Reply:
        try:
            with HttpClient(
                self.address, bearer=self._token.shown, timeouts=TIMEOUTS, wire=self._wire
            ) as client:
                return client.send(method, path, body, headers)
        except NetworkFault as fault:
            raise PublishServerUnreachableError(
                server=self.address, reason=f"{fault.kind}: {fault.reason}"[:_LONGEST]
            ) from fault


def _classes(module: Any) -> dict[str, type[EtudeError]]:  # noqa: ANN401 - a module
    found = (one for one in vars(module).values() if isinstance(one, type))
    return {one.code: one for one in found if issubclass(one, EtudeError)}


_KNOWN: Final = {
    **_classes(remote_errors),
    **_classes(bundle_errors),
    **_classes(errors),
}
"""What can be wrong with a publication, by code: what the server says is told in our words."""


def _params(problem: dict[str, Any]) -> dict[str, str | float]:
    """Return the parameters of an error that came as JSON."""
    named = {name: value for name, value in problem.items() if name not in _OWN_MEMBERS}
    return {
        name: value[:_LONGEST] if isinstance(value, str) else value
        for name, value in named.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


_OWN_MEMBERS: Final = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "message", "errors"}
)
