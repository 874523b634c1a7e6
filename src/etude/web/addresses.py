"""What an address takes: text in its path, its methods, for `OPTIONS`, and names in its query."""

from collections.abc import Mapping
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from litestar import Litestar, Response
from litestar.exceptions import ValidationException
from litestar.routes import HTTPRoute

from etude.web.declared import declaration_in
from etude.web.services import HttpRequest

OPTIONS: Final = "OPTIONS"

Takes: TypeAlias = Mapping[str, Mapping[str, frozenset[str]]]
"""By path template and method: the names that may stand in the query."""


def what_is_taken(app: Litestar) -> Takes:
    """Read from the routes what each address takes; `HEAD` is answered where `GET` is."""
    return {
        route.path_format: {
            method: frozenset(each.field_alias for each in model.expected_query_params)
            for method, (_, model) in route.route_handler_map.items()
        }
        for route in app.routes
        if isinstance(route, HTTPRoute)
    }


async def before_request(request: HttpRequest) -> Response[None] | None:
    """Answer `OPTIONS`; refuse a path that is no text, and a query with names nobody knows.

    A name that is misspelt must not be passed over: a list that was to be one learner's would be
    everybody's. Public routes are left out: who watches a server adds what keeps caches away.

    Raises:
        ValidationException: 400, for the path, or for each name that the route does not know.
    """
    _check_path(request)
    takes: Takes = request.app.state["takes"]
    address = takes[request.scope["path_template"]]
    if request.method == OPTIONS:
        methods = address.keys() | ({"HEAD"} if "GET" in address else set())
        return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))})
    if request.scope["query_string"]:
        _check_query(request, address[request.method])
    return None


def _check_path(request: HttpRequest) -> None:
    """Refuse bytes that are no UTF-8: U+FFFD stands for each of them, so ids would fall in one."""
    if "\ufffd" not in request.scope["path"]:
        return
    try:
        unquote_to_bytes(request.scope["raw_path"]).decode()
    except UnicodeDecodeError:
        extra = [{"key": None, "source": "path", "message": "not UTF-8"}]
        raise ValidationException(extra=extra) from None


def _check_query(request: HttpRequest, known: frozenset[str]) -> None:
    declared = declaration_in(request.route_handler.opt)
    if declared is None or declared.public:
        return
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        extra = [{"key": name, "source": "query", "message": "unknown"} for name in unknown]
        raise ValidationException(extra=extra)
