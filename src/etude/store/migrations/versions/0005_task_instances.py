"""Which sessions are tasks that were done; those stored before are found by their first event."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0005_task_instances"
down_revision = "0004_sessions"

_BATCH = 1_000


def upgrade() -> None:
    table = op.create_table(
        "task_instance",
        sa.Column("session_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("session_key", name="pk_task_instance"),
    )
    event = sa.table(
        "session_event",
        sa.column("receipt", sa.BigInteger),
        sa.column("session_key", sa.BigInteger),
        sa.column("event_type", sa.String),
        sa.column("line", sa.LargeBinary),
    )
    found: set[int] = set()
    connection, after = op.get_bind(), 0
    while True:
        rows = connection.execute(
            sa.select(event.c.receipt, event.c.session_key, event.c.line)
            .where(event.c.receipt > after, event.c.event_type == "session_start")
            .order_by(event.c.receipt)
            .limit(_BATCH)
        ).all()
        new = {row.session_key for row in rows if _names_a_task(row.line)} - found
        if new:
            op.bulk_insert(table, [{"session_key": key} for key in sorted(new)])
        found |= new
        if len(rows) < _BATCH:
            return
        after = rows[-1].receipt


def _names_a_task(line: bytes) -> bool:
    value = json.loads(line).get("value")
    if not isinstance(value, dict):
        return False
    names = (value.get("app_id"), value.get("task_id"))
    return all(isinstance(name, str) and name for name in names)
