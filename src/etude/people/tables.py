"""Tables of people. Times are microseconds since 1970 in UTC.

A learner's row outlives the learner's data: erased, it is a tombstone (`docs/rules.md 13, 49`) that
keeps the surrogate key, a hash of the random public id and the time of erasure, and nothing else.
Surrogate keys are never used twice, so that an audit entry can never point at somebody else.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from etude.store.schema import metadata

# SQLite gives only an INTEGER PRIMARY KEY its row id; AUTOINCREMENT keeps it from reusing one.
_Key = BigInteger().with_variant(Integer, "sqlite")

learner = Table(
    "learner",
    metadata,
    Column("learner_key", _Key, primary_key=True),
    Column("learner_id", String(64), unique=True),
    Column("learner_id_sha256", LargeBinary(32), unique=True),
    Column("display_name", String(200)),
    Column("locale", String(16)),
    Column("created_us", BigInteger),
    Column("erased_us", BigInteger),
    CheckConstraint(
        "(erased_us IS NULL AND learner_id IS NOT NULL AND display_name IS NOT NULL"
        " AND locale IS NOT NULL AND created_us IS NOT NULL AND learner_id_sha256 IS NULL)"
        " OR (erased_us IS NOT NULL AND learner_id IS NULL AND display_name IS NULL"
        " AND locale IS NULL AND created_us IS NULL AND learner_id_sha256 IS NOT NULL)",
        name="whole_or_tombstone",
    ),
    sqlite_autoincrement=True,
)

staff = Table(
    "staff",
    metadata,
    Column("staff_key", _Key, primary_key=True),
    Column("staff_id", String(64), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("role", String(16), nullable=False),
    Column("password_hash", String(255), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    CheckConstraint("role IN ('operator', 'teacher')", name="role"),
    sqlite_autoincrement=True,
)

device = Table(
    "device",
    metadata,
    Column("device_key", _Key, primary_key=True),
    Column("device_id", String(128), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# A program that acts for others: a gateway, a school's own system.
service = Table(
    "service",
    metadata,
    Column("service_key", _Key, primary_key=True),
    Column("service_id", String(64), nullable=False, unique=True),
    Column("created_us", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# Half-open: the holder has the device from `starts_us` until just before `ends_us` (null: still).
# Rows of an erased learner stay: keys and times only, they are how a late upload is refused.
device_holder = Table(
    "device_holder",
    metadata,
    Column("holder_key", _Key, primary_key=True),
    Column("device_key", ForeignKey("device.device_key"), nullable=False),
    Column("learner_key", ForeignKey("learner.learner_key"), nullable=False, index=True),
    Column("starts_us", BigInteger, nullable=False),
    Column("ends_us", BigInteger),
    CheckConstraint("ends_us IS NULL OR ends_us > starts_us", name="interval"),
    Index("uq_device_holder_start", "device_key", "starts_us", unique=True),
    sqlite_autoincrement=True,
)

# A school's class. Archived, it counts no more: nobody is in it, what was assigned to it is over.
school_class = Table(
    "school_class",
    metadata,
    Column("class_key", _Key, primary_key=True),
    Column("class_id", String(64), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("grade", String(200)),
    Column("created_us", BigInteger, nullable=False),
    Column("archived_us", BigInteger),
    sqlite_autoincrement=True,
)

# Who teaches a class now; who did is in the audit log.
class_staff = Table(
    "class_staff",
    metadata,
    Column("class_key", ForeignKey("school_class.class_key"), primary_key=True),
    Column("staff_key", ForeignKey("staff.staff_key"), primary_key=True, index=True),
    Column("since_us", BigInteger, nullable=False),
)

# Half-open, as holdings are; of one learner and one class no two overlap. A learner may be in
# several classes. Rows of an erased learner go: nothing that comes late is refused by them.
class_member = Table(
    "class_member",
    metadata,
    Column("member_key", _Key, primary_key=True),
    Column("class_key", ForeignKey("school_class.class_key"), nullable=False),
    Column("learner_key", ForeignKey("learner.learner_key"), nullable=False, index=True),
    Column("starts_us", BigInteger, nullable=False),
    Column("ends_us", BigInteger),
    CheckConstraint("ends_us IS NULL OR ends_us > starts_us", name="interval"),
    Index("uq_class_member_start", "class_key", "learner_key", "starts_us", unique=True),
    sqlite_autoincrement=True,
)

# `public_id` finds the row; of the secret only its sha256 is kept. It is 256 random bits, so a slow
# hash (argon2 is for passwords) would cost every request its milliseconds and win nothing.
token = Table(
    "token",
    metadata,
    Column("token_key", _Key, primary_key=True),
    Column("public_id", String(32), nullable=False, unique=True),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("device_key", ForeignKey("device.device_key"), index=True),
    Column("learner_key", ForeignKey("learner.learner_key"), index=True),
    Column("staff_key", ForeignKey("staff.staff_key"), index=True),
    Column("service_key", ForeignKey("service.service_key"), index=True),
    Column("label", String(200)),
    Column("scopes", Text, nullable=False),  # separated by spaces, as in RFC 6749 §3.3
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger),
    Column("revoked_us", BigInteger),
    Column("last_used_us", BigInteger),
    CheckConstraint(
        "(kind = 'device' AND device_key IS NOT NULL AND learner_key IS NULL"
        " AND staff_key IS NULL AND service_key IS NULL)"
        " OR (kind = 'learner' AND learner_key IS NOT NULL AND device_key IS NULL"
        " AND staff_key IS NULL AND service_key IS NULL)"
        " OR (kind = 'staff' AND staff_key IS NOT NULL AND device_key IS NULL"
        " AND learner_key IS NULL AND service_key IS NULL)"
        " OR (kind = 'service' AND service_key IS NOT NULL AND device_key IS NULL"
        " AND learner_key IS NULL AND staff_key IS NULL)",
        name="one_principal",
    ),
    sqlite_autoincrement=True,
)

# Append-only; keys without foreign keys, because an entry outlives what it speaks of.
audit = Table(
    "audit",
    metadata,
    Column("audit_key", _Key, primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("actor_kind", String(16), nullable=False),
    Column("actor_key", BigInteger, nullable=False),
    Column("token_key", BigInteger),
    Column("action", String(64), nullable=False),
    Column("subject_kind", String(16), nullable=False),
    Column("subject_key", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
    Index("ix_audit_subject", "subject_kind", "subject_key", "audit_key"),
    Index("ix_audit_actor", "actor_kind", "actor_key", "audit_key"),
    sqlite_autoincrement=True,
)

# A gateway process that is linked to a web process: a lease, renewed by the web process that holds
# the link. Behind its end the gateway counts as away, and its devices as offline.
gateway_link = Table(
    "gateway_link",
    metadata,
    Column("gateway_id", String(64), primary_key=True),
    Column("link_id", String(36), nullable=False),
    Column("reaches_offline", Boolean, nullable=False),  # it has a broker: `docs/rules.md 23`
    Column("since_us", BigInteger, nullable=False),
    Column("renewed_us", BigInteger, nullable=False),
)

# The newest connection of a device, as its gateway told. Counts while the gateway's lease does.
device_presence = Table(
    "device_presence",
    metadata,
    Column("device_key", ForeignKey("device.device_key"), primary_key=True, autoincrement=False),
    Column("gateway_id", String(64), nullable=False, index=True),
    Column("link_id", String(36), nullable=False),
    Column("connection_id", String(64), nullable=False),
    Column("since_us", BigInteger, nullable=False),
)

# What a gateway is to do with a device. `next_try_us` is null once it is settled; `gateway_id` is
# set where only one gateway can do it; `sent_to` is the gateway that has it.
gateway_command = Table(
    "gateway_command",
    metadata,
    Column("command_key", _Key, primary_key=True),
    Column("msg_id", String(64), nullable=False, unique=True),
    Column("device_key", ForeignKey("device.device_key"), nullable=False, index=True),
    Column("action", String(32), nullable=False),
    Column("payload", Text, nullable=False),
    Column("gateway_id", String(64)),
    Column("state", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("sent_to", String(64)),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("next_try_us", BigInteger, index=True),
    Column("settled_us", BigInteger, index=True),
    Column("code", Integer),
    Column("message", String(200)),
    CheckConstraint(
        "(state IN ('waiting', 'sent') AND next_try_us IS NOT NULL AND settled_us IS NULL)"
        " OR (state IN ('done', 'refused', 'expired') AND next_try_us IS NULL"
        " AND settled_us IS NOT NULL)",
        name="state",
    ),
    sqlite_autoincrement=True,
)

# "What gateways cache about this subject has changed": a kind and a surrogate key, never the
# content, which is read when it is sent. Removed after minutes: a link begins with a snapshot.
gateway_change = Table(
    "gateway_change",
    metadata,
    Column("change_key", _Key, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("subject_key", BigInteger, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# A device that may connect (`docs/rules.md 43`), with the client id of when its code was typed.
# `client_id` is null once it was unbound. Credentials issued before `valid_from_us` are revoked.
device_binding = Table(
    "device_binding",
    metadata,
    Column("device_key", ForeignKey("device.device_key"), primary_key=True, autoincrement=False),
    Column("client_id", String(128)),
    Column("serial", String(64)),
    Column("bound_us", BigInteger, nullable=False),
    Column("valid_from_us", BigInteger, nullable=False),
)

# A code that a device shows, as its gateway told. Used and expired ones stay for a while, so that
# whoever types one is told which it is.
device_bind_code = Table(
    "device_bind_code",
    metadata,
    Column("code", String(6), primary_key=True),
    Column("device_id", String(128), nullable=False, index=True),
    Column("client_id", String(128), nullable=False),
    Column("board", String(64), nullable=False),
    Column("version", String(32), nullable=False),
    Column("serial", String(64), nullable=False),
    Column("proof", String(16), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False, index=True),
    Column("used_us", BigInteger),
)

# A single credential that is refused, until `forget_us`, when it has expired anyway.
device_credential_revocation = Table(
    "device_credential_revocation",
    metadata,
    Column("revocation_key", _Key, primary_key=True),
    Column("credential_id", String(64), nullable=False, unique=True),
    Column("device_key", ForeignKey("device.device_key"), nullable=False, index=True),
    Column("revoked_us", BigInteger, nullable=False),
    Column("forget_us", BigInteger, nullable=False, index=True),
    sqlite_autoincrement=True,
)
