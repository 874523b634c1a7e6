"""Routes about people: learners, devices and their holders, tokens, the audit log."""

from typing import Final

from litestar.handlers import HTTPRouteHandler

from etude.web import audit_log, bindings, devices, learners, tokens

route_handlers: Final[list[HTTPRouteHandler]] = [
    *learners.route_handlers,
    *devices.route_handlers,
    *bindings.route_handlers,
    *tokens.route_handlers,
    *audit_log.route_handlers,
]
