"""What goes over the gateways' link about assignments."""

from collections.abc import Collection, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, to_us
from etude.people.changes import ChangeSource
from etude.practice.assigned import ASSIGNMENTS, AssignmentNews
from etude.practice.assignments import repository


def change_sources(clock: Clock) -> tuple[ChangeSource, ...]:
    """Return what gateways cache of this package, for the composition root to register."""

    async def everything(connection: AsyncConnection) -> Sequence[AssignmentNews]:
        standing = await repository.standing(connection, to_us(clock.now()))
        return [AssignmentNews(assignment_key=one.assignment_key, assigned=one) for one in standing]

    async def about(connection: AsyncConnection, keys: Collection[int]) -> Sequence[AssignmentNews]:
        standing = await repository.standing(connection, to_us(clock.now()), keys)
        found = {one.assignment_key: one for one in standing}
        return [AssignmentNews(assignment_key=key, assigned=found.get(key)) for key in keys]

    return (ChangeSource(kind=ASSIGNMENTS, everything=everything, about=about),)
