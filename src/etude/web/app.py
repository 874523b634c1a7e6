"""The HTTP application: every route, one error shape, one door."""

from collections.abc import Iterable
from typing import Final

from litestar import Litestar
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from etude.settings import Role
from etude.web import (
    agent_reports,
    assignments,
    cards,
    classroom_jobs,
    classrooms,
    course_accounts,
    course_receiving,
    courses,
    courseware,
    device_actions,
    health,
    lesson_packs,
    openapi,
    people,
    reports,
    reviews,
    sessions,
    task_instances,
    tutor,
    uploads,
)
from etude.web.addresses import before_request, what_is_taken
from etude.web.auth import guard
from etude.web.bodies import JsonRequest
from etude.web.declared import declaration
from etude.web.envelope import answer_failure
from etude.web.front import BodyLimits, Front
from etude.web.problems import JSON_LIMIT_BYTES
from etude.web.services import Services
from etude.web.upgrades import ROLES, LinkEndpoint

# Each noun's module exports `route_handlers`; a new one is added here.
ROUTE_HANDLERS: Final[tuple[HTTPRouteHandler, ...]] = (
    *health.route_handlers,
    *openapi.route_handlers,
    *people.route_handlers,
    *device_actions.route_handlers,
    *assignments.route_handlers,
    *uploads.route_handlers,
    *sessions.route_handlers,
    *task_instances.route_handlers,
    *agent_reports.route_handlers,
    *reports.route_handlers,
    *reviews.route_handlers,
    *cards.route_handlers,
    *courses.route_handlers,
    *course_accounts.route_handlers,
    *classroom_jobs.route_handlers,
    *classrooms.route_handlers,
    *courseware.route_handlers,
    *tutor.route_handlers,
    *lesson_packs.route_handlers,
    *course_receiving.route_handlers,
)


def create_app(
    services: Services,
    route_handlers: Iterable[HTTPRouteHandler] = ROUTE_HANDLERS,
    *,
    limits: BodyLimits | None = None,
) -> Front:
    """Build the ASGI application for the role in `services.settings`.

    Raises:
        UndeclaredRouteError: a handler does not say who serves it and who may ask.
    """
    return fronted(routed(services.settings.role, route_handlers), services, limits)


def routed(role: Role, route_handlers: Iterable[HTTPRouteHandler] = ROUTE_HANDLERS) -> Litestar:
    """Build the routes of a role (0.2 s of a core), without what they work on.

    Raises:
        UndeclaredRouteError: as above.
    """
    served = served_routes(role, route_handlers)
    litestar = Litestar(
        route_handlers=served,
        guards=[guard],
        before_request=before_request,
        exception_handlers={Exception: answer_failure},
        state=State({"route_handlers": served}),
        request_class=JsonRequest,
        request_max_body_size=JSON_LIMIT_BYTES,
        openapi_config=None,  # `etude.web.openapi` serves the document, without pages
        logging_config=None,
        debug=False,
        pdb_on_exception=False,
    )
    litestar.state["takes"] = what_is_taken(litestar)
    return litestar


def fronted(litestar: Litestar, services: Services, limits: BodyLimits | None = None) -> Front:
    """Return routes as the application that works on `services`, and on nothing they had before."""
    litestar.state.update(services=services, readiness=health.Readiness())
    sockets = LinkEndpoint(
        services.links, services.authenticator, served=services.settings.role in ROLES
    )
    return Front(litestar, sockets, services.in_flight, limits or BodyLimits())


def served_routes(
    role: Role, route_handlers: Iterable[HTTPRouteHandler] = ROUTE_HANDLERS
) -> list[HTTPRouteHandler]:
    """Return the handlers that a `web` of `role` has (`docs/rules.md 39`)."""
    return [handler for handler in route_handlers if declaration(handler).served(role)]
