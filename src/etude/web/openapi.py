"""The OpenAPI 3.1 document of the routes, made from the handlers themselves.

Litestar writes operations, parameters and our structs' schemas; this module adds what the
declarations know: security, bodies that handlers read by themselves, and problem documents. Checked
in as `docs/schemas/openapi.json`; a test compares. There is no page for it: pages come with their
own scripts from elsewhere.
"""

import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec
from litestar import Litestar, get
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from etude import i18n
from etude.errors import EtudeError
from etude.people.errors import ScopeForbiddenError, TokenInvalidError, TokenMissingError
from etude.web import envelope, problems
from etude.web.declared import EVERYWHERE, Access, Declared, declaration, declared
from etude.web.errors import (
    BodyEncodingError,
    BodyMalformedError,
    BodyTimeoutError,
    BodyTooLargeError,
    BusyError,
    EncodingUnknownError,
    MediaTypeError,
    RequestInvalidError,
)
from etude.web.routes import routes
from etude.web.services import HttpRequest

MEDIA_TYPE: Final = "application/vnd.oai.openapi+json;version=3.1"
SECURITY_SCHEME: Final = "bearer"
PUBLISH_SCHEME: Final = "publishToken"
_REFERENCE: Final = "#/components/schemas/{name}"

_READ_BY_HANDLER: Final = (
    BodyEncodingError,
    BodyTimeoutError,
    BodyTooLargeError,
    EncodingUnknownError,
    MediaTypeError,
    BusyError,
)
_READ_AS_JSON: Final = (BodyMalformedError, BodyTimeoutError, BodyTooLargeError, MediaTypeError)


@get(
    "/openapi.json",
    opt=declared(roles=EVERYWHERE, needs=Access.PUBLIC),
    media_type=MEDIA_TYPE,
    tags=["Operations"],
)
async def openapi_json(request: HttpRequest) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the routes that this server has."""
    state = request.app.state
    if "openapi" not in state:
        state["openapi"] = document(state["route_handlers"])
    made: dict[str, Any] = state["openapi"]
    return made


def document(handlers: Iterable[HTTPRouteHandler]) -> dict[str, Any]:
    """Return the OpenAPI document of `handlers` as JSON values, in a stable order."""
    served = list(handlers)
    made = _as_litestar_says(served)
    for route in routes(served):
        _complete(made["paths"][route.path][route.method.lower()], route.declared)
    components = made.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = _problem_schema()
    components["schemas"] |= _schemas_of([envelope.Failure, *_read_by_handlers(served)])
    components["securitySchemes"] = {
        SECURITY_SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "A token made with `etude token create`.",
        },
        PUBLISH_SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "The publish token of the installation.",
        },
    }
    made["paths"] = dict(sorted(made["paths"].items()))
    components["schemas"] = dict(sorted(components["schemas"].items()))
    return made


def encode(made: dict[str, Any]) -> bytes:
    """Write the document as indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def _as_litestar_says(handlers: list[HTTPRouteHandler]) -> dict[str, Any]:
    config = OpenAPIConfig(
        title="Etude",
        version=version("etude"),
        description="Practice sessions: upload, read, export. Conventions: `docs/http-api.md`.",
        use_handler_docstrings=True,
        operation_id_creator=_operation_id,
        render_plugins=[JsonRenderPlugin()],  # given only so that no pages are made
    )
    app = Litestar(route_handlers=handlers, openapi_config=config, logging_config=None)
    schema = app.openapi_schema.to_schema()
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return made


def _operation_id(handler: HTTPRouteHandler, _method: object, path: list[Any]) -> str:
    """Name an operation after its handler; one that is at two addresses, twice."""
    below = len(handler.paths) > 1 and path[0] == "xiaozhi"
    return f"{handler.handler_name}{'_below_xiaozhi' if below else ''}"


def _read_by_handlers(handlers: Iterable[HTTPRouteHandler]) -> list[type[msgspec.Struct]]:
    bodies = (declaration(handler).body for handler in handlers)
    return [body.model for body in bodies if body is not None and body.model is not None]


def _schemas_of(types: Iterable[type[msgspec.Struct]]) -> dict[str, Any]:
    _, found = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    return dict(found)


def _complete(operation: dict[str, Any], facts: Declared) -> None:
    operation.pop("deprecated", None)
    described = operation.get("description", "")
    operation["description"] = re.split(r"\n\s*(?:Args|Raises|Returns):", described)[0].strip()
    operation["summary"] = operation["description"].partition(".")[0].replace("\n", " ")
    if facts.body is not None:
        model = facts.body.model
        schema = {"type": "string"} if model is None else _reference(model.__name__)
        operation["requestBody"] = {
            "required": True,
            "description": facts.body.description,
            "content": {name: {"schema": schema} for name in facts.body.media_types},
        }
    if Access.PUBLISH_TOKEN in facts.needs:
        operation["security"] = [{PUBLISH_SCHEME: []}]
    elif not facts.public:
        operation["security"] = [{SECURITY_SCHEME: []}]
        scopes = [need for need in facts.needs if need != Access.SIGNED_IN]
        if scopes:
            operation["x-etude-scopes"] = scopes
    operation["x-etude-roles"] = list(facts.roles)
    responses = operation["responses"]
    responses.get("204", {}).pop("content", None)  # RFC 9110 §15.3.5: nothing follows
    failure = _failure_content(in_envelope=facts.envelope)
    responses.update(_failure_responses(_raised(operation, facts), failure))
    responses["default"] = {"description": "Any other failure.", "content": failure}


def _raised(operation: dict[str, Any], facts: Declared) -> list[type[EtudeError]]:
    raised: list[type[EtudeError]] = list(facts.raises)
    if not facts.public:
        raised += [TokenMissingError, TokenInvalidError]
        if set(facts.needs).isdisjoint({Access.SIGNED_IN, Access.PUBLISH_TOKEN}):
            raised.append(ScopeForbiddenError)
    if facts.body is not None:
        raised += _READ_BY_HANDLER
    elif "requestBody" in operation:
        raised += _READ_AS_JSON
    if "400" in operation["responses"] or operation.get("parameters"):
        raised.append(RequestInvalidError)
    return raised


def _failure_responses(
    raised: Iterable[type[EtudeError]], content: dict[str, Any]
) -> dict[str, Any]:
    by_status: dict[int, dict[str, None]] = {}
    for error in raised:
        by_status.setdefault(error.status, {})[error.code] = None
    return {
        str(status): {
            "description": f"{_title(status)}: {', '.join(f'`{code}`' for code in codes)}.",
            "content": content,
        }
        for status, codes in sorted(by_status.items())
    }


def _title(status: int) -> str:
    try:
        return i18n.text(f"problem.title.{status}")
    except KeyError:
        return HTTPStatus(status).phrase


def _failure_content(*, in_envelope: bool) -> dict[str, Any]:
    if in_envelope:
        return {envelope.MEDIA_TYPE: {"schema": _reference(envelope.Failure.__name__)}}
    return {problems.MEDIA_TYPE: {"schema": _reference("Problem")}}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(name=name)}


def _problem_schema() -> dict[str, Any]:
    found = _schemas_of([problems.Problem, problems.FieldError, problems.Part])
    problem = found["Problem"]
    problem["properties"]["errors"]["items"] = {"anyOf": [found["FieldError"], found["Part"]]}
    problem["additionalProperties"] = True
    schema: dict[str, Any] = problem
    return schema


route_handlers = [openapi_json]
