"""Devices that may connect, the codes that others show, single credentials that are revoked."""

import sqlalchemy as sa
from alembic import op

revision = "0006_device_bindings"
down_revision = "0005_task_instances"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "device_binding",
        sa.Column("device_key", _KEY, nullable=False, autoincrement=False),
        sa.Column("client_id", sa.String(128)),
        sa.Column("serial", sa.String(64)),
        sa.Column("bound_us", sa.BigInteger(), nullable=False),
        sa.Column("valid_from_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("device_key", name="pk_device_binding"),
        sa.ForeignKeyConstraint(
            ["device_key"], ["device.device_key"], name="fk_device_binding_device_key_device"
        ),
    )
    op.create_table(
        "device_bind_code",
        sa.Column("code", sa.String(6), nullable=False),
        sa.Column("device_id", sa.String(128), nullable=False),
        sa.Column("client_id", sa.String(128), nullable=False),
        sa.Column("board", sa.String(64), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("serial", sa.String(64), nullable=False),
        sa.Column("proof", sa.String(16), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.Column("used_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("code", name="pk_device_bind_code"),
    )
    op.create_index("ix_device_bind_code_device_id", "device_bind_code", ["device_id"])
    op.create_index("ix_device_bind_code_expires_us", "device_bind_code", ["expires_us"])
    op.create_table(
        "device_credential_revocation",
        sa.Column("revocation_key", _KEY, nullable=False),
        sa.Column("credential_id", sa.String(64), nullable=False),
        sa.Column("device_key", _KEY, nullable=False),
        sa.Column("revoked_us", sa.BigInteger(), nullable=False),
        sa.Column("forget_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revocation_key", name="pk_device_credential_revocation"),
        sa.UniqueConstraint("credential_id", name="uq_device_credential_revocation_credential_id"),
        sa.ForeignKeyConstraint(
            ["device_key"],
            ["device.device_key"],
            name="fk_device_credential_revocation_device_key_device",
        ),
        sqlite_autoincrement=True,
    )
    for column in ("device_key", "forget_us"):
        op.create_index(
            f"ix_device_credential_revocation_{column}", "device_credential_revocation", [column]
        )
