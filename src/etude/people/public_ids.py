"""From surrogate keys back to the ids that people know, for showing the audit log."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from sqlalchemy import Column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.people.tables import device, learner, school_class, service, staff, token

_IDS: Final[Mapping[str, tuple[Column[int], Column[str]]]] = {
    "device": (device.c.device_key, device.c.device_id),
    "learner": (learner.c.learner_key, learner.c.learner_id),
    "staff": (staff.c.staff_key, staff.c.staff_id),
    "service": (service.c.service_key, service.c.service_id),
    "class": (school_class.c.class_key, school_class.c.class_id),
    "token": (token.c.token_key, token.c.public_id),
}


async def public_ids(
    connection: AsyncConnection, wanted: Iterable[tuple[str, int]]
) -> Mapping[tuple[str, int], str]:
    """Return the ids of these kinds and keys, without those that have none (any more)."""
    keys: defaultdict[str, set[int]] = defaultdict(set)
    for kind, key in wanted:
        keys[kind].add(key)
    found: dict[tuple[str, int], str] = {}
    for kind, (key_column, id_column) in _IDS.items():
        if keys[kind]:
            statement = select(key_column, id_column).where(
                key_column.in_(keys[kind]), id_column.is_not(None)
            )
            rows = await connection.execute(statement)
            found |= {(kind, key): public_id for key, public_id in rows}
    return found
