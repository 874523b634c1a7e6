"""The ledger: what was asked, what came back, what it cost. No recorded answer is asked for again.

A call is written down before it is made, with what it can cost at most; its answer is written down
before anybody uses it (`docs/rules.md 37`). Which answers may serve again:

* in the same run, every one: a run that a kill interrupted comes the same way again;
* in a later run on the same subject and part, those that passed every check, until somebody asks
  for another one (`retire`).

Another subject's answers are never looked at.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec
from sqlalchemy import Row, and_, delete, func, insert, or_, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import from_us, to_us
from etude.people.paging import DEFAULT_LIMIT, key_after, page
from etude.people.records import Page
from etude.people.spending.amounts import Spent, Tokens
from etude.people.spending.tables import model_call
from etude.store import UnitOfWork

_c: Final = model_call.c
MOST_CALLS: Final = 1000
MOST_ANSWERS_BYTES: Final = 16 << 20
NO_PART: Final = -1
"""Of calls that belong to no module."""
KEPT: Final = timedelta(days=400)
"""Of calls that belong to no run: as long as anybody compares a month with that of last year."""
State = Literal["asked", "answered", "failed"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call stands in the ledger.

    Attributes:
        subject: whose work it is: `course:<key>`, `session:<key>`.
        run_id: of the run, the same after a kill; empty where there are no runs.
        part: the index of a module; -1 where there is none.
        owner: whose quota is drawn on.
    """

    subject: str
    run_id: str
    part: int
    owner: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is about to be made.

    Attributes:
        asked_sha256: of everything that is sent.
        attempt: 1 for the first, more after faults of the wire.
        most: what it can cost at most.
    """

    stage: str
    asked_sha256: str
    model: str
    attempt: int
    most: Tokens
    cost_micro: int | None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded answer."""

    call_key: int
    answer: bytes
    accepted: bool = False


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call as it stands in the ledger; `answer` only where it was asked for."""

    call_key: int
    run_id: str
    part: int
    stage: str
    attempt: int
    asked_sha256: str
    model: str
    state: State
    accepted: bool
    error_code: str | None
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost_micro: int | None
    asked_at: datetime
    ended_at: datetime | None
    answer: bytes | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A call as an operator sees it, whoever made it; what was said is not in it."""

    call_key: int
    owner: str
    subject: str
    stage: str
    model: str
    state: State
    error_code: str | None
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost_micro: int | None
    asked_at: datetime
    ended_at: datetime | None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a subject has cost so far; `cost_micro` None = nobody said what models cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost_micro: int | None = None


async def one_at_a_time(work: UnitOfWork, owner: str) -> None:
    """Let one process at a time look at an owner's spending and add to it, until the commit."""
    if work.database.dialect == "postgresql":  # SQLite has one writer anyway
        statement = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        await work.connection.execute(statement, {"name": f"people.spending:{owner}"})


async def kept(connection: AsyncConnection, place: Place, stage: str, sha: str) -> Kept | None:
    """Return the recorded answer to a question, if it may serve."""
    same = and_(
        _c.subject == place.subject,
        _c.part == place.part,
        _c.stage == stage,
        _c.asked_sha256 == sha,
        _c.state == "answered",
    )
    may = or_(_c.run_id == place.run_id, and_(_c.accepted, ~_c.retired))
    wanted = select(_c.call_key, _c.answer, _c.accepted).where(same, may)
    row = (await connection.execute(wanted.order_by(_c.call_key.desc()).limit(1))).first()
    if row is None:
        return None
    return Kept(call_key=row.call_key, answer=row.answer, accepted=row.accepted)


async def begin(work: UnitOfWork, place: Place, question: Question, now: datetime) -> int:
    """Write down a call that is about to be made; return its key."""
    row = {
        "subject": place.subject, "run_id": place.run_id, "part": place.part, "owner": place.owner,
        "stage": question.stage, "attempt": question.attempt,
        "asked_sha256": question.asked_sha256, "model": question.model[:200], "state": "asked",
        "accepted": False, "retired": False, "prompt_tokens": question.most.prompt,
        "completion_tokens": question.most.completion, "estimated": True,
        "cost_micro": question.cost_micro, "asked_us": to_us(now),
    }  # fmt: skip
    made = insert(model_call).values(row).returning(_c.call_key)
    return int((await work.connection.execute(made)).scalar_one())


async def end(  # noqa: PLR0913 - columns
    work: UnitOfWork,
    call_key: int,
    now: datetime,
    *,
    tokens: Tokens,
    cost_micro: int | None,
    estimated: bool = False,
    answer: bytes | None = None,
    error_code: str | None = None,
) -> None:
    """Write down how a call ended: with an answer, kept or not, or an error's code."""
    values = {
        "state": "answered" if error_code is None else "failed",
        "answer": answer,
        "error_code": error_code,
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "estimated": estimated,
        "cost_micro": cost_micro,
        "ended_us": to_us(now),
    }
    changed = update(model_call).where(_c.call_key == call_key).values(values)
    await work.connection.execute(changed)


async def accept(work: UnitOfWork, call_key: int) -> None:
    """Note that an answer passed every check."""
    changed = update(model_call).where(_c.call_key == call_key).values(accepted=True)
    await work.connection.execute(changed)


async def retire(work: UnitOfWork, subject: str, parts: Sequence[int]) -> None:
    """Let answers serve no later run: somebody asked for other ones."""
    mine = and_(_c.subject == subject, _c.part.in_(parts))
    await work.connection.execute(update(model_call).where(mine).values(retired=True))


async def erase(work: UnitOfWork, subject: str) -> None:
    """Remove everything that was asked and answered for a subject."""
    await work.connection.execute(delete(model_call).where(_c.subject == subject))


async def forget_old_calls(work: UnitOfWork, now: datetime) -> None:
    """Remove calls whose answers were never kept, a year after; courses' go with the course."""
    old = and_(_c.asked_us < to_us(now - KEPT), _c.asked_sha256 == "")
    await work.connection.execute(delete(model_call).where(old))


async def spent_by_run(connection: AsyncConnection, run_id: str) -> Spent:
    """Return what a run has spent."""
    return await _spent(connection, _c.run_id == run_id)


async def spent_by_owner(connection: AsyncConnection, owner: str, since: datetime) -> Spent:
    """Return what an owner has spent since a moment, on whatever it was."""
    return await _spent(connection, and_(_c.owner == owner, _c.asked_us >= to_us(since)))


async def spent_since(connection: AsyncConnection, since: datetime) -> Spent:
    """Return what everybody has spent since a moment."""
    return await _spent(connection, _c.asked_us >= to_us(since))


async def _spent(connection: AsyncConnection, which: Any) -> Spent:  # noqa: ANN401 - a condition
    sums = select(
        func.coalesce(func.sum(_c.prompt_tokens + _c.completion_tokens), 0),
        func.coalesce(func.sum(_c.cost_micro), 0),
    ).where(which)
    tokens, micro = (await connection.execute(sums)).one()
    return Spent(tokens=int(tokens), micro=int(micro))


_ENTRY: Final[list[Any]] = [one for one in _c if one.name != "answer"]


async def everybodys(
    connection: AsyncConnection,
    *,
    since: datetime | None = None,
    cursor: str | None = None,
    limit: int = DEFAULT_LIMIT,
) -> Page[Entry]:
    """Return a page of all calls, or of those asked at `since` or later, as entered; no answers.

    A toy's call is entered when its gateway tells of it, so the order is not quite that of times.
    """
    wanted = select(*_ENTRY).where(_c.call_key > key_after(cursor))
    if since is not None:
        wanted = wanted.where(_c.asked_us >= to_us(since))
    rows = await connection.execute(wanted.order_by(_c.call_key).limit(limit + 1))
    return page(rows.all(), limit, _entry, "call_key")


async def calls_for(connection: AsyncConnection, owner: str) -> list[Entry]:
    """Return the newest calls that an owner's days were drawn on for, oldest first."""
    wanted = select(*_ENTRY).where(_c.owner == owner)
    rows = await connection.execute(wanted.order_by(_c.call_key.desc()).limit(MOST_CALLS))
    return [_entry(row) for row in reversed(rows.all())]


async def known_runs(connection: AsyncConnection, run_ids: Sequence[str]) -> set[str]:
    """Return which of these runs have calls in the ledger."""
    found = await connection.execute(select(_c.run_id).where(_c.run_id.in_(run_ids)))
    return set(found.scalars())


async def usage_of(connection: AsyncConnection, subject: str) -> Usage:
    """Return what a subject has cost."""
    sums = select(
        func.count(),
        func.sum(_c.prompt_tokens),
        func.sum(_c.completion_tokens),
        func.max(_c.cost_micro),
        func.sum(_c.cost_micro),
    ).where(_c.subject == subject)
    calls, prompt, completion, priced, cost = (await connection.execute(sums)).one()
    guessed = select(func.count()).where(_c.subject == subject, _c.estimated)
    return Usage(
        calls=calls,
        prompt_tokens=int(prompt or 0),
        completion_tokens=int(completion or 0),
        estimated=bool((await connection.execute(guessed)).scalar_one()),
        cost_micro=None if priced is None else int(cost),
    )


async def calls_of(
    connection: AsyncConnection, subject: str, *, answers: bool = False, most: int = MOST_CALLS
) -> list[Call]:
    """Return the newest calls of a subject, in the order in which they were made.

    Of the answers only the newest come with them, `MOST_ANSWERS_BYTES` altogether.
    """
    columns = [one for one in _c if one.name != "answer"]
    size = func.coalesce(func.length(_c.answer), 0).label("size")
    wanted = select(*columns, size).where(_c.subject == subject)
    rows = list(await connection.execute(wanted.order_by(_c.call_key.desc()).limit(most)))
    texts = await _answers(connection, rows) if answers else {}
    return [_call(row, texts.get(row.call_key)) for row in reversed(rows)]


async def _answers(connection: AsyncConnection, rows: Sequence[Any]) -> dict[int, bytes]:
    chosen, left = [], MOST_ANSWERS_BYTES
    for row in rows:
        left -= row.size
        if left < 0:
            break
        if row.state == "answered":
            chosen.append(row.call_key)
    wanted = select(_c.call_key, _c.answer).where(_c.call_key.in_(chosen))
    return {row.call_key: row.answer for row in await connection.execute(wanted)}


async def found_by(connection: AsyncConnection, subject: str, stage: str) -> list[bytes]:
    """Return the recorded answers of a stage, newest first."""
    wanted = select(_c.answer).where(
        _c.subject == subject, _c.stage == stage, _c.state == "answered"
    )
    rows = await connection.execute(wanted.order_by(_c.call_key.desc()))
    return [row.answer for row in rows]


async def failure_of(connection: AsyncConnection, subject: str, stage: str) -> str | None:
    """Return the code of the last failure of a stage."""
    wanted = select(_c.error_code).where(
        _c.subject == subject, _c.stage == stage, _c.state == "failed"
    )
    found = await connection.execute(wanted.order_by(_c.call_key.desc()).limit(1))
    code: str | None = found.scalar_one_or_none()
    return code


def _call(row: Row[Any], answer: bytes | None) -> Call:
    return Call(
        call_key=row.call_key,
        run_id=row.run_id,
        part=row.part,
        stage=row.stage,
        attempt=row.attempt,
        asked_sha256=row.asked_sha256,
        model=row.model,
        state=row.state,
        accepted=row.accepted,
        error_code=row.error_code,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        estimated=row.estimated,
        cost_micro=row.cost_micro,
        asked_at=from_us(row.asked_us),
        ended_at=None if row.ended_us is None else from_us(row.ended_us),
        answer=answer,
    )


def _entry(row: Row[Any]) -> Entry:
    return Entry(
        call_key=row.call_key,
        owner=row.owner,
        subject=row.subject,
        stage=row.stage,
        model=row.model,
        state=row.state,
        error_code=row.error_code,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        estimated=row.estimated,
        cost_micro=row.cost_micro,
        asked_at=from_us(row.asked_us),
        ended_at=None if row.ended_us is None else from_us(row.ended_us),
    )
