"""One request's own state, from its first byte to its last: id, body, route, outcome."""

import uuid
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

_KEY: Final = "etude.request"


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """Made by `etude.web.front`, ended by it. Belongs to one task."""

    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    body_ended: bool = False
    disconnected: bool = False
    held_bytes: int = 0
    more_body_s: float = 0.0
    """How much longer than others this request's body may take, said by a route that trusts it."""
    code: str | None = None
    principal: Any = None


def put_context(scope: MutableMapping[str, Any], context: RequestContext) -> None:
    """Attach `context` to an ASGI scope."""
    scope[_KEY] = context


def context_of(scope: Any) -> RequestContext:  # noqa: ANN401 - ASGI servers and Litestar type it differently
    """Return the context of the request with this ASGI scope."""
    context: RequestContext = scope[_KEY]
    return context
