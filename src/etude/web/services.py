"""What the routes work with, made once when the process starts and passed to `create_app`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import structlog
from litestar import Request
from litestar.datastructures import State

from etude.assess.enqueue import AssessProjector
from etude.authoring.classrooms.learner_data import classrooms_data
from etude.clock import Clock, Ids, RandomIds, SystemClock
from etude.examiner.card_links import CardLinks
from etude.examiner.enqueue import projectors
from etude.examiner.learner_data import all_learner_data
from etude.examiner.shelf import RubricShelf
from etude.people import roster_feed
from etude.people.authentication import Authenticator
from etude.people.binding_feed import change_sources, report_sinks
from etude.people.device_credentials import DeviceKeys, read_keys
from etude.people.errors import DeviceKeyMissingError
from etude.people.learner_data import LearnerDataRegistry
from etude.people.spending import toys_feed
from etude.people.spending.paying import Payer
from etude.people.spending.terms import spending_terms
from etude.people.token_use import TokenUse
from etude.practice.assignments import feed as assignments_feed
from etude.practice.assignments.learner_data import assignments_data
from etude.sessions.ingest import Ingest
from etude.settings import Settings
from etude.store import Blobs, Database
from etude.store.errors import StoreUnavailable
from etude.web.gateway_link import GatewayLinks
from etude.web.in_flight import InFlight
from etude.web.tutor_desk import TutorDesk

TOKEN_USE_EVERY_S: Final = 60.0

log = structlog.get_logger("etude.web")

HttpRequest: TypeAlias = Request[Any, Any, State]
Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything with a lifetime as long as the process. Made by `compose`."""

    settings: Settings
    database: Database
    blobs: Blobs
    authenticator: Authenticator
    ingest: Ingest
    clock: Clock
    ids: Ids
    learner_data: LearnerDataRegistry
    links: GatewayLinks
    shelf: RubricShelf
    card_links: CardLinks
    payer: Payer
    tutoring: TutorDesk = field(default_factory=TutorDesk)
    token_use: TokenUse = field(default_factory=TokenUse)
    in_flight: InFlight = field(default_factory=InFlight)

    async def in_thread(
        self, function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        """Run `function` off the event loop, so that other requests go on meanwhile."""
        return await asyncio.to_thread(function, *args, **kwargs)


def compose(
    settings: Settings, database: Database, clock: Clock | None = None, ids: Ids | None = None
) -> Services:
    """Put the services together over an open database; a test gives its own clock and ids."""
    time = clock or SystemClock()
    made = ids or RandomIds()
    blobs = Blobs(settings.blobs, time)
    keys = _device_keys(settings)
    spending = spending_terms(settings)
    return Services(
        settings=settings,
        database=database,
        blobs=blobs,
        authenticator=Authenticator(database, time, keys),
        ingest=Ingest(database, time, projectors=(*projectors(time), AssessProjector(time))),
        clock=time,
        ids=made,
        learner_data=all_learner_data(
            time, blobs, assignments_data(time), classrooms_data(time, blobs, settings.classrooms)
        ),
        links=GatewayLinks(
            database,
            time,
            made,
            sources=(
                *change_sources(time),
                *roster_feed.change_sources(time),
                *assignments_feed.change_sources(time),
            ),
            sinks=(*report_sinks(), *toys_feed.report_sinks(spending)),
        ),
        shelf=RubricShelf(settings.rubrics),
        card_links=CardLinks(settings.base_url, () if keys is None else keys.secrets),
        payer=Payer(database, time, spending),
    )


def _device_keys(settings: Settings) -> DeviceKeys | None:
    """Return the keys of devices' credentials; without them only tokens count."""
    try:
        return read_keys(settings.data / "keys")
    except DeviceKeyMissingError as error:
        log.warning("no device credential is accepted", action="web.no_device_key", code=error.code)
        return None


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open the database of `settings`, compose the services, close it at the end."""
    async with await Database.open(settings.database_url) as database:
        services = compose(settings, database)
        noting = asyncio.create_task(_note_token_use(services))
        try:
            yield services
        finally:
            noting.cancel()
            await _flush_token_use(services)


async def _note_token_use(services: Services) -> None:
    while True:
        await asyncio.sleep(TOKEN_USE_EVERY_S)
        await _flush_token_use(services)


async def _flush_token_use(services: Services) -> None:
    try:
        await services.token_use.flush(services.database)
    except StoreUnavailable as error:  # only a convenience is lost
        log.warning("token use not noted", action="web.token_use_lost", code=error.code)


def services_of(request: HttpRequest) -> Services:
    """Return the services of the application that `request` came to."""
    services: Services = request.app.state["services"]
    return services
