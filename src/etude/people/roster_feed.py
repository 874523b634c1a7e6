"""What goes over the gateways' link about rosters: the classes of each learner."""

from collections.abc import Collection, Sequence

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock, to_us
from etude.people.changes import ChangeSource
from etude.people.roster_records import ROSTERS, InClass, LearnerClasses
from etude.people.tables import class_member, school_class


def change_sources(clock: Clock) -> tuple[ChangeSource, ...]:
    """Return what gateways cache of this module, for the composition root to register."""

    async def everything(connection: AsyncConnection) -> Sequence[LearnerClasses]:
        found = await _standing(connection, to_us(clock.now()), None)
        return [LearnerClasses(learner_key=key, classes=tuple(of)) for key, of in found.items()]

    async def about(connection: AsyncConnection, keys: Collection[int]) -> Sequence[LearnerClasses]:
        found = await _standing(connection, to_us(clock.now()), keys)
        return [LearnerClasses(learner_key=key, classes=tuple(found.get(key, ()))) for key in keys]

    return (ChangeSource(kind=ROSTERS, everything=everything, about=about),)


async def _standing(
    connection: AsyncConnection, now_us: int, learner_keys: Collection[int] | None
) -> dict[int, list[InClass]]:
    """Return who is in which class now or later, by learner, without archived classes."""
    statement = (
        select(
            class_member.c.learner_key,
            class_member.c.class_key,
            class_member.c.starts_us,
            class_member.c.ends_us,
        )
        .join(school_class, school_class.c.class_key == class_member.c.class_key)
        .where(
            school_class.c.archived_us.is_(None),
            or_(class_member.c.ends_us.is_(None), class_member.c.ends_us > now_us),
        )
        .order_by(class_member.c.member_key)
    )
    if learner_keys is not None:
        statement = statement.where(class_member.c.learner_key.in_(learner_keys))
    found: dict[int, list[InClass]] = {}
    for row in await connection.execute(statement):
        one = InClass(class_key=row.class_key, starts_us=row.starts_us, ends_us=row.ends_us)
        found.setdefault(row.learner_key, []).append(one)
    return found
