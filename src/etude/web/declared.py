"""What every route says about itself: who serves it, who may ask, how it fails.

A handler carries `opt=declared(…)`. `create_app` refuses one that does not, so no route can be open
by oversight; `docs/routes.md` and the OpenAPI document are generated from the same declarations.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, get_args

import msgspec
from litestar.handlers import HTTPRouteHandler

from etude.errors import EtudeError
from etude.settings import Role

KEY: Final = "etude"
ServedBy = Literal["ops", "server", "learner"]
EVERYWHERE: Final[tuple[ServedBy, ...]] = get_args(ServedBy)


class Access(StrEnum):
    """Who may ask, where it is not a scope."""

    PUBLIC = "public"  # anybody, without a token
    SIGNED_IN = "signed_in"  # any known principal
    PUBLISH_TOKEN = "publish_token"  # noqa: S105 - who shows the publish token; nobody's principal


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A body that the handler reads by itself (`etude.web.bodies`); `model` if it is JSON."""

    media_types: tuple[str, ...]
    limit_bytes: int
    description: str
    compressible: bool = False
    model: type[msgspec.Struct] | None = None


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of one route."""

    roles: tuple[ServedBy, ...]
    needs: tuple[str, ...]
    raises: tuple[type[EtudeError], ...] = ()
    body: Body | None = None
    envelope: bool = False

    @property
    def public(self) -> bool:
        """Whether no token is asked for."""
        return Access.PUBLIC in self.needs

    def served(self, role: Role) -> bool:
        """Whether a `web` of `role` has this route (`docs/rules.md 39`)."""
        return role == "all" or role in self.roles


def declared(
    *,
    roles: tuple[ServedBy, ...],
    needs: str | tuple[str, ...],
    raises: tuple[type[EtudeError], ...] = (),
    body: Body | None = None,
    envelope: bool = False,
) -> dict[str, Any]:
    """Return a handler's `opt`.

    Args:
        roles: the server roles that have the route (`EVERYWHERE`, `("server", "learner")`, …).
        needs: a scope of `etude.people`, several (any one is enough), or an `Access`.
        raises: the errors that a caller should know of; they go into the OpenAPI document.
        body: what the handler reads with `read_body` or `stream_body`, if anything.
        envelope: it answers `{code, msg, data}`, failures too (`etude.web.envelope`).
    """
    wanted = (needs,) if isinstance(needs, str) else needs
    return {KEY: Declared(roles=roles, needs=wanted, raises=raises, body=body, envelope=envelope)}


class UndeclaredRouteError(EtudeError):
    """A route handler has no `opt=declared(…)`: a mistake in the program, found at start-up."""

    code = "ROUTE_UNDECLARED"


def declaration(handler: HTTPRouteHandler) -> Declared:
    """Return what `handler` declared; `UndeclaredRouteError` if nothing."""
    found = declaration_in(handler.opt)
    if found is None:
        raise UndeclaredRouteError(route=" ".join(sorted(handler.paths)))
    return found


def declaration_in(opt: Mapping[str, Any]) -> Declared | None:
    """Return the declaration in a handler's options; Litestar's own handlers have none."""
    found = opt.get(KEY)
    return found if isinstance(found, Declared) else None
