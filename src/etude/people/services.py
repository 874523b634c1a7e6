"""Services: programs that act for others, such as the gateway. Made by their first token."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import to_us
from etude.people.names import check_id
from etude.people.records import Service
from etude.people.tables import service


async def ensure_service(connection: AsyncConnection, service_id: str, now: datetime) -> Service:
    """Return the service with this name; store it if there is none yet. Raises `IdInvalidError`."""
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(service)
    await connection.execute(
        insert.values(
            service_id=check_id(service_id), created_us=to_us(now)
        ).on_conflict_do_nothing()
    )
    statement = select(service.c.service_key).where(service.c.service_id == service_id)
    return Service(
        service_key=(await connection.execute(statement)).scalar_one(), service_id=service_id
    )
