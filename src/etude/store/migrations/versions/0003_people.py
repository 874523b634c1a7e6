"""People: learners, staff, devices and their holders, services, tokens, the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0003_people"
down_revision = "0002_jobs"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_WHOLE_OR_TOMBSTONE = (
    "(erased_us IS NULL AND learner_id IS NOT NULL AND display_name IS NOT NULL"
    " AND locale IS NOT NULL AND created_us IS NOT NULL AND learner_id_sha256 IS NULL)"
    " OR (erased_us IS NOT NULL AND learner_id IS NULL AND display_name IS NULL"
    " AND locale IS NULL AND created_us IS NULL AND learner_id_sha256 IS NOT NULL)"
)
_ONE_PRINCIPAL = (
    "(kind = 'device' AND device_key IS NOT NULL AND learner_key IS NULL"
    " AND staff_key IS NULL AND service_key IS NULL)"
    " OR (kind = 'learner' AND learner_key IS NOT NULL AND device_key IS NULL"
    " AND staff_key IS NULL AND service_key IS NULL)"
    " OR (kind = 'staff' AND staff_key IS NOT NULL AND device_key IS NULL"
    " AND learner_key IS NULL AND service_key IS NULL)"
    " OR (kind = 'service' AND service_key IS NOT NULL AND device_key IS NULL"
    " AND learner_key IS NULL AND staff_key IS NULL)"
)


def upgrade() -> None:
    _principals()
    _holders()
    _tokens()
    _audit()


def _principals() -> None:
    op.create_table(
        "learner",
        sa.Column("learner_key", _KEY, nullable=False),
        sa.Column("learner_id", sa.String(64)),
        sa.Column("learner_id_sha256", sa.LargeBinary(32)),
        sa.Column("display_name", sa.String(200)),
        sa.Column("locale", sa.String(16)),
        sa.Column("created_us", sa.BigInteger()),
        sa.Column("erased_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("learner_key", name="pk_learner"),
        sa.UniqueConstraint("learner_id", name="uq_learner_learner_id"),
        sa.UniqueConstraint("learner_id_sha256", name="uq_learner_learner_id_sha256"),
        sa.CheckConstraint(_WHOLE_OR_TOMBSTONE, name="ck_learner_whole_or_tombstone"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "staff",
        sa.Column("staff_key", _KEY, nullable=False),
        sa.Column("staff_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password_hash", sa.String(255), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("staff_key", name="pk_staff"),
        sa.UniqueConstraint("staff_id", name="uq_staff_staff_id"),
        sa.CheckConstraint("role IN ('operator', 'teacher')", name="ck_staff_role"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "device",
        sa.Column("device_key", _KEY, nullable=False),
        sa.Column("device_id", sa.String(128), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("device_key", name="pk_device"),
        sa.UniqueConstraint("device_id", name="uq_device_device_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "service",
        sa.Column("service_key", _KEY, nullable=False),
        sa.Column("service_id", sa.String(64), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("service_key", name="pk_service"),
        sa.UniqueConstraint("service_id", name="uq_service_service_id"),
        sqlite_autoincrement=True,
    )


def _holders() -> None:
    op.create_table(
        "device_holder",
        sa.Column("holder_key", _KEY, nullable=False),
        sa.Column("device_key", _KEY, nullable=False),
        sa.Column("learner_key", _KEY, nullable=False),
        sa.Column("starts_us", sa.BigInteger(), nullable=False),
        sa.Column("ends_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("holder_key", name="pk_device_holder"),
        sa.ForeignKeyConstraint(
            ["device_key"], ["device.device_key"], name="fk_device_holder_device_key_device"
        ),
        sa.ForeignKeyConstraint(
            ["learner_key"], ["learner.learner_key"], name="fk_device_holder_learner_key_learner"
        ),
        sa.CheckConstraint(
            "ends_us IS NULL OR ends_us > starts_us", name="ck_device_holder_interval"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_device_holder_learner_key", "device_holder", ["learner_key"])
    op.create_index(
        "uq_device_holder_start", "device_holder", ["device_key", "starts_us"], unique=True
    )


def _tokens() -> None:
    principals = ("device", "learner", "staff", "service")
    op.create_table(
        "token",
        sa.Column("token_key", _KEY, nullable=False),
        sa.Column("public_id", sa.String(32), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        *(sa.Column(f"{kind}_key", _KEY) for kind in principals),
        sa.Column("label", sa.String(200)),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger()),
        sa.Column("revoked_us", sa.BigInteger()),
        sa.Column("last_used_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("token_key", name="pk_token"),
        sa.UniqueConstraint("public_id", name="uq_token_public_id"),
        *(
            sa.ForeignKeyConstraint(
                [f"{kind}_key"], [f"{kind}.{kind}_key"], name=f"fk_token_{kind}_key_{kind}"
            )
            for kind in principals
        ),
        sa.CheckConstraint(_ONE_PRINCIPAL, name="ck_token_one_principal"),
        sqlite_autoincrement=True,
    )
    for kind in principals:
        op.create_index(f"ix_token_{kind}_key", "token", [f"{kind}_key"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("audit_key", _KEY, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(16), nullable=False),
        sa.Column("actor_key", sa.BigInteger(), nullable=False),
        sa.Column("token_key", sa.BigInteger()),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject_kind", sa.String(16), nullable=False),
        sa.Column("subject_key", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("audit_key", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_subject", "audit", ["subject_kind", "subject_key", "audit_key"])
    op.create_index("ix_audit_actor", "audit", ["actor_kind", "actor_key", "audit_key"])
