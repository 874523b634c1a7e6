"""The table of routes by role (`docs/routes.md`), written from what each route declares."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from litestar.handlers import HTTPRouteHandler

from etude.web.declared import EVERYWHERE, Access, Declared, declaration

HEAD: Final = """# Routes

`etude web --role ROLE` (or `ETUDE_ROLE`) serves the routes of one role; `all`, the default, serves
every route. *Needs* is what the bearer token must allow: one of the scopes named, or any valid
token (*a token*), or nothing (*public*). `HEAD` is answered where `GET` is, `OPTIONS` everywhere.

This page is written by `make schemas` from what each route declares.

| method | path | ops | server | learner | needs | what it does |
|---|---|---|---|---|---|---|
"""
_NEEDS: Final = {
    str(Access.PUBLIC): "public",
    str(Access.SIGNED_IN): "a token",
    str(Access.PUBLISH_TOKEN): "the publish token",
}


class Route(NamedTuple):
    """One method of one path."""

    path: str
    method: str
    handler: HTTPRouteHandler

    @property
    def declared(self) -> Declared:
        """What its handler says about it."""
        return declaration(self.handler)

    @property
    def summary(self) -> str:
        """The first sentence of the handler's docstring."""
        words = " ".join((self.handler.fn.__doc__ or "").split())
        return words.partition(". ")[0].rstrip(".")


def routes(handlers: Iterable[HTTPRouteHandler]) -> list[Route]:
    """Return every route of `handlers`, by path and method; a parameter is written `{name}`."""
    return sorted(
        Route(template(path), str(method), handler)
        for handler in handlers
        for path in handler.paths
        for method in handler.http_methods
    )


def template(path: str) -> str:
    """Return a path as OpenAPI writes it: `{session_id:str}` becomes `{session_id}`."""
    parts = (part.partition(":")[0] + "}" if part[:1] == "{" else part for part in path.split("/"))
    return "/".join(parts)


def page(handlers: Iterable[HTTPRouteHandler]) -> str:
    """Return `docs/routes.md`."""
    return HEAD + "".join(_row(route) for route in routes(handlers))


def _row(route: Route) -> str:
    marks = " | ".join("✓" if role in route.declared.roles else "" for role in EVERYWHERE)
    needs = ", ".join(_NEEDS.get(need, f"`{need}`") for need in route.declared.needs)
    return f"| {route.method} | `{route.path}` | {marks} | {needs} | {route.summary} |\n"
