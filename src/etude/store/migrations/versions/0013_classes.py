"""Classes, who teaches them and who is in them when; assignments to a class."""

import sqlalchemy as sa
from alembic import op

revision = "0013_classes"
down_revision = "0012_courses"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_WHOLE_PIN = (
    "(courseware_id IS NULL AND courseware_version IS NULL AND content_hash IS NULL"
    " AND scene_id IS NULL) OR (courseware_id IS NOT NULL AND courseware_version IS NOT NULL"
    " AND content_hash IS NOT NULL AND scene_id IS NOT NULL)"
)
_ONE_HOLDER = (
    "(learner_key IS NOT NULL AND device_key IS NULL AND class_key IS NULL)"
    " OR (learner_key IS NULL AND device_key IS NOT NULL AND class_key IS NULL)"
    " OR (learner_key IS NULL AND device_key IS NULL AND class_key IS NOT NULL)"
)


def upgrade() -> None:
    _classes()
    _staff()
    _members()
    _assignments()


def _classes() -> None:
    op.create_table(
        "school_class",
        sa.Column("class_key", _KEY, nullable=False),
        sa.Column("class_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("grade", sa.String(200)),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("archived_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("class_key", name="pk_school_class"),
        sa.UniqueConstraint("class_id", name="uq_school_class_class_id"),
        sqlite_autoincrement=True,
    )


def _staff() -> None:
    op.create_table(
        "class_staff",
        sa.Column("class_key", _KEY, nullable=False, autoincrement=False),
        sa.Column("staff_key", _KEY, nullable=False, autoincrement=False),
        sa.Column("since_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("class_key", "staff_key", name="pk_class_staff"),
        sa.ForeignKeyConstraint(
            ["class_key"], ["school_class.class_key"], name="fk_class_staff_class_key_school_class"
        ),
        sa.ForeignKeyConstraint(
            ["staff_key"], ["staff.staff_key"], name="fk_class_staff_staff_key_staff"
        ),
    )
    op.create_index("ix_class_staff_staff_key", "class_staff", ["staff_key"])


def _members() -> None:
    op.create_table(
        "class_member",
        sa.Column("member_key", _KEY, nullable=False),
        sa.Column("class_key", _KEY, nullable=False),
        sa.Column("learner_key", _KEY, nullable=False),
        sa.Column("starts_us", sa.BigInteger(), nullable=False),
        sa.Column("ends_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("member_key", name="pk_class_member"),
        sa.ForeignKeyConstraint(
            ["class_key"], ["school_class.class_key"], name="fk_class_member_class_key_school_class"
        ),
        sa.ForeignKeyConstraint(
            ["learner_key"], ["learner.learner_key"], name="fk_class_member_learner_key_learner"
        ),
        sa.CheckConstraint(
            "ends_us IS NULL OR ends_us > starts_us", name="ck_class_member_interval"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_class_member_learner_key", "class_member", ["learner_key"])
    op.create_index(
        "uq_class_member_start",
        "class_member",
        ["class_key", "learner_key", "starts_us"],
        unique=True,
    )


def _assignments() -> None:
    """Let an assignment be of a class. SQLite changes no constraint: the table is made again."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    if sqlite:
        last = "SELECT seq FROM sqlite_sequence WHERE name = 'assignment'"
        sequence = op.get_bind().exec_driver_sql(last).scalar_one_or_none() or 0
    with op.batch_alter_table("assignment", copy_from=_assignment_before()) as batch:
        batch.add_column(sa.Column("class_key", _KEY))
        batch.drop_constraint("ck_assignment_one_holder", type_="check")
        batch.create_check_constraint("ck_assignment_one_holder", _ONE_HOLDER)
        batch.create_foreign_key(
            "fk_assignment_class_key_school_class", "school_class", ["class_key"], ["class_key"]
        )
    op.create_index("ix_assignment_class_key", "assignment", ["class_key"])
    if sqlite:  # no key is used twice, also where the newest row has been removed
        op.get_bind().exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'assignment'")
        op.get_bind().exec_driver_sql(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('assignment', ?)", (sequence,)
        )


def _assignment_before() -> sa.Table:
    """The table as 0011 made it."""
    table = sa.Table(
        "assignment",
        sa.MetaData(),
        sa.Column("assignment_key", _KEY, nullable=False),
        sa.Column("assignment_id", sa.String(64), nullable=False),
        sa.Column("learner_key", _KEY),
        sa.Column("device_key", _KEY),
        sa.Column("app_id", sa.String(32), nullable=False),
        sa.Column("task_id", sa.String(32), nullable=False),
        sa.Column("lesson_id", sa.String(64), nullable=False),
        sa.Column("listen_ratio", sa.Float(53)),
        sa.Column("courseware_id", sa.String(64)),
        sa.Column("courseware_version", sa.Integer()),
        sa.Column("content_hash", sa.String(71)),
        sa.Column("scene_id", sa.String(128)),
        sa.Column("starts_us", sa.BigInteger(), nullable=False),
        sa.Column("ends_us", sa.BigInteger()),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn_us", sa.BigInteger()),
        sa.PrimaryKeyConstraint("assignment_key", name="pk_assignment"),
        sa.UniqueConstraint("assignment_id", name="uq_assignment_assignment_id"),
        sa.ForeignKeyConstraint(
            ["learner_key"], ["learner.learner_key"], name="fk_assignment_learner_key_learner"
        ),
        sa.ForeignKeyConstraint(
            ["device_key"], ["device.device_key"], name="fk_assignment_device_key_device"
        ),
        sa.CheckConstraint(
            "(learner_key IS NULL) <> (device_key IS NULL)", name="ck_assignment_one_holder"
        ),
        sa.CheckConstraint("ends_us IS NULL OR ends_us > starts_us", name="ck_assignment_interval"),
        sa.CheckConstraint(_WHOLE_PIN, name="ck_assignment_whole_pin"),
        sqlite_autoincrement=True,
    )
    sa.Index("ix_assignment_learner_key", table.c.learner_key)
    sa.Index("ix_assignment_device_key", table.c.device_key)
    return table
