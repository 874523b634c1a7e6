"""Gateways: links and their leases, presence of devices, commands, marks of change."""

import sqlalchemy as sa
from alembic import op

revision = "0007_gateway_commands"
down_revision = "0006_device_bindings"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_STATE = (
    "(state IN ('waiting', 'sent') AND next_try_us IS NOT NULL AND settled_us IS NULL)"
    " OR (state IN ('done', 'refused', 'expired') AND next_try_us IS NULL"
    " AND settled_us IS NOT NULL)"
)


def upgrade() -> None:
    _presence()
    _commands()
    op.create_table(
        "gateway_change",
        sa.Column("change_key", _KEY, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject_key", sa.BigInteger(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("change_key", name="pk_gateway_change"),
        sqlite_autoincrement=True,
    )


def _presence() -> None:
    op.create_table(
        "gateway_link",
        sa.Column("gateway_id", sa.String(64), nullable=False),
        sa.Column("link_id", sa.String(36), nullable=False),
        sa.Column("reaches_offline", sa.Boolean(), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.Column("renewed_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("gateway_id", name="pk_gateway_link"),
    )
    op.create_table(
        "device_presence",
        sa.Column("device_key", _KEY, nullable=False, autoincrement=False),
        sa.Column("gateway_id", sa.String(64), nullable=False),
        sa.Column("link_id", sa.String(36), nullable=False),
        sa.Column("connection_id", sa.String(64), nullable=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("device_key", name="pk_device_presence"),
        sa.ForeignKeyConstraint(
            ["device_key"], ["device.device_key"], name="fk_device_presence_device_key_device"
        ),
    )
    op.create_index("ix_device_presence_gateway_id", "device_presence", ["gateway_id"])


def _commands() -> None:
    op.create_table(
        "gateway_command",
        sa.Column("command_key", _KEY, nullable=False),
        sa.Column("msg_id", sa.String(64), nullable=False),
        sa.Column("device_key", _KEY, nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("gateway_id", sa.String(64)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("sent_to", sa.String(64)),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("next_try_us", sa.BigInteger()),
        sa.Column("settled_us", sa.BigInteger()),
        sa.Column("code", sa.Integer()),
        sa.Column("message", sa.String(200)),
        sa.PrimaryKeyConstraint("command_key", name="pk_gateway_command"),
        sa.UniqueConstraint("msg_id", name="uq_gateway_command_msg_id"),
        sa.ForeignKeyConstraint(
            ["device_key"], ["device.device_key"], name="fk_gateway_command_device_key_device"
        ),
        sa.CheckConstraint(_STATE, name="ck_gateway_command_state"),
        sqlite_autoincrement=True,
    )
    for column in ("device_key", "next_try_us", "settled_us"):
        op.create_index(f"ix_gateway_command_{column}", "gateway_command", [column])
