"""What people itself keeps of a learner: exported as files, erased to a tombstone."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from etude.clock import Clock
from etude.people import audit
from etude.people.holders import holdings_of_learner
from etude.people.learner_data import ExportFile, LearnerData
from etude.people.learners import bury_learner, get_learner_by_key
from etude.people.paging import MAX_LIMIT
from etude.people.records import AuditEntry, Holding, Token
from etude.people.rosters import InClassOf, classes_of_learner, forget_learner
from etude.people.spending.ledger import Entry, calls_for
from etude.people.tables import audit as audit_table
from etude.people.tables import class_member, device_holder, learner, token
from etude.people.tokens import bury_tokens, tokens_of_learner
from etude.store import Database, UnitOfWork

CONTEXT = "people"


def people_data(clock: Clock) -> LearnerData:
    """Return what people registers. Register it first: it is exported first and erased last.

    Nothing of the audit log and of the holdings goes: they hold keys, times and code words only.
    """

    async def erase(work: UnitOfWork, learner_key: int) -> None:
        now = clock.now()
        await forget_learner(work, learner_key, now)
        await bury_tokens(work.connection, learner_key, now)
        await bury_learner(work.connection, learner_key, now)

    return LearnerData(
        context=CONTEXT,
        tables=(learner, token, class_member),
        keys_only=(device_holder, audit_table),
        export_learner=export_learner,
        erase_learner=erase,
    )


async def export_learner(database: Database, learner_key: int) -> AsyncIterator[ExportFile]:
    """Yield `learner.json`, and the learner's devices, classes, tokens, calls, audit entries."""
    async with database.read() as connection:
        person = await get_learner_by_key(connection, learner_key)
        holdings = await holdings_of_learner(connection, learner_key)
        classes = await classes_of_learner(connection, learner_key)
        tokens = await tokens_of_learner(connection, learner_key)
        calls = await calls_for(connection, f"learner:{learner_key}")
    shown = {
        "learner_id": person.learner_id,
        "display_name": person.display_name,
        "locale": person.locale,
        "created_at": person.created_at,
    }
    yield ExportFile(path="learner.json", chunks=_once(msgspec.json.encode(shown)))
    yield ExportFile(
        path="devices.jsonl", chunks=_once(_lines([_holding(one) for one in holdings]))
    )
    yield ExportFile(
        path="classes.jsonl", chunks=_once(_lines([_in_class(one) for one in classes]))
    )
    yield ExportFile(path="tokens.jsonl", chunks=_once(_lines([_token(one) for one in tokens])))
    yield ExportFile(
        path="model_calls.jsonl", chunks=_once(_lines([_called(one) for one in calls]))
    )
    yield ExportFile(path="audit.jsonl", chunks=_audit(database, learner_key))


async def _audit(database: Database, learner_key: int) -> AsyncIterator[bytes]:
    cursor: str | None = None
    while True:
        async with database.read() as connection:
            page = await audit.list_audit(
                connection, subject=("learner", learner_key), cursor=cursor, limit=MAX_LIMIT
            )
        yield _lines([_entry(one) for one in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _lines(items: Sequence[dict[str, Any]]) -> bytes:
    return msgspec.json.Encoder().encode_lines(items)


def _holding(holding: Holding) -> dict[str, Any]:
    return {
        "device_id": holding.device_id,
        "starts_at": holding.starts_at,
        "ends_at": holding.ends_at,
    }


def _in_class(one: InClassOf) -> dict[str, Any]:
    return msgspec.structs.asdict(one)


def _token(token: Token) -> dict[str, Any]:
    shown = msgspec.structs.asdict(token)
    return {
        name: shown[name] for name in shown if name not in {"token_key", "principal_id", "kind"}
    }


def _called(call: Entry) -> dict[str, Any]:
    shown = msgspec.structs.asdict(call)
    return {name: shown[name] for name in shown if name not in {"call_key", "owner", "subject"}}


def _entry(entry: AuditEntry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "actor_kind": entry.actor.kind,
        "action": entry.action,
        "detail": entry.detail,
    }
