"""Routes about people: learners, classes, devices and their holders, tokens, the audit log."""

from typing import Final

from litestar.handlers import HTTPRouteHandler

from etude.web import (
    audit_log,
    bindings,
    classes,
    devices,
    learners,
    model_calls,
    rosters,
    tokens,
)

route_handlers: Final[list[HTTPRouteHandler]] = [
    *learners.route_handlers,
    *classes.route_handlers,
    *rosters.route_handlers,
    *devices.route_handlers,
    *bindings.route_handlers,
    *tokens.route_handlers,
    *audit_log.route_handlers,
    *model_calls.route_handlers,
]
