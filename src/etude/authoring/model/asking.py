"""Asking for one part of a course: replayed, bounded, tried again, written down.

Whatever is asked goes through here: models, pictures, searches. One at a time, so that a kill
leaves at most one question open (`docs/rules.md 37`).
"""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from etude.authoring.model.errors import CourseBudgetSpentError
from etude.authoring.seats import Seat
from etude.clock import Clock
from etude.errors import EtudeError
from etude.files import crash_point
from etude.llm.chat import Chat, Endpoint, Message, Request
from etude.llm.errors import LlmError, LlmThrottledError, LlmTimeoutError
from etude.llm.pictures import PictureEndpoint
from etude.people.spending import ledger, terms
from etude.people.spending.amounts import (
    MICRO,
    Limit,
    Price,
    Spent,
    Tokens,
    prompt_tokens,
    tokens_of,
)
from etude.people.spending.ledger import Kept, Question
from etude.store import Database, UnitOfWork

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 16.0
RETRIES: Final = 5
PATIENCE_S: Final = 120
"""A server that asks for a longer pause ends the run; a person resumes it."""
_JITTER: Final = 0.2
_DETERMINED: Final = frozenset({"cut_off_content_filter"})
Sleep = Callable[[float], Awaitable[None]]


class Terms(terms.Terms, frozen=True, kw_only=True):
    """On what terms an installation asks for courses: where, which models, for how much.

    Attributes:
        models: by stage (`scene:quiz`, `scene`, …); every other stage has the endpoint's.
        budget: of one run.
        search_url: a SearXNG server; None = no searches.
        pictures: None = diagrams by rule alone.
    """

    endpoint: Endpoint
    models: Mapping[str, str] = {}
    budget: Limit = Limit()
    search_url: str | None = None
    pictures: PictureEndpoint | None = None

    def model_for(self, stage: str) -> str:
        """Return the model of a stage: its own, its family's, the usual one."""
        family = stage.partition(":")[0]
        return self.models.get(stage) or self.models.get(family) or self.endpoint.model

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All that bounds spending."""
        return (*super().limits, self.budget)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded answer of a model.

    Attributes:
        cut: its longest length ended it.
        accepted: it passed every check before.
    """

    call_key: int = 0
    text: str
    cut: bool = False
    accepted: bool = False


class Desk(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What asking needs of an installation."""

    database: Database
    clock: Clock
    terms: Terms
    sleep: Sleep = asyncio.sleep


class Asking:
    """Asks for one seat; lives as long as its part of the work."""

    def __init__(self, desk: Desk, seat: Seat, chat: Chat) -> None:
        """Ask through `chat`, in the name of `seat`."""
        self._desk = desk
        self._seat = seat
        self._chat = chat

    @property
    def terms(self) -> Terms:
        """On what terms it asks."""
        return self._desk.terms

    @property
    def subject(self) -> str:
        """Whose work it is."""
        return self._seat.subject

    async def ask(self, stage: str, messages: tuple[Message, ...], max_tokens: int) -> Said:
        """Return a model's answer, a recorded one if there is one that may serve.

        Raises:
            LlmError: there is none, after all tries.
            CourseBudgetSpentError, QuotaSpentError, PriceMissingError: it was not asked.
            Fenced: the run is not this process's any more.
        """
        model = self.terms.model_for(stage)
        request = Request(messages=messages, max_tokens=max_tokens, model=model)
        price = self.terms.price_of(model)
        most = Tokens(
            prompt=prompt_tokens(tuple(one.content for one in messages)), completion=max_tokens
        )

        async def once(call_key: int) -> Kept:
            heard: list[str] = []
            try:
                answer = await self._chat.stream(request, heard.append)
            except LlmError as error:
                used = self._used(most, heard, error)
                await self._failed(call_key, error.code, used, _micro(price, used))
                raise
            prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
            guessed = Tokens(prompt=most.prompt, completion=tokens_of(answer.text))
            told = Tokens(
                prompt=guessed.prompt if prompt is None else prompt,
                completion=guessed.completion if completion is None else completion,
            )
            body = msgspec.json.encode({"text": answer.text, "cut": answer.cut})
            return await self._answered(
                call_key,
                body,
                told,
                _micro(price, told),
                estimated=prompt is None or completion is None,
            )

        sent = msgspec.json.encode(request)
        question = _question(stage, model, sent, most, _micro(price, most))
        kept = await self._asked(question, once, RETRIES)
        said = msgspec.json.decode(kept.answer, type=Said)
        return msgspec.structs.replace(said, call_key=kept.call_key, accepted=kept.accepted)

    async def fetch(
        self,
        stage: str,
        source: str,
        asked: object,
        get: Callable[[], Awaitable[bytes]],
        *,
        pictures: int = 0,
        retries: int = 1,
        keep: Callable[[UnitOfWork, bytes], Awaitable[None]] | None = None,
    ) -> bytes:
        """Return something that is no model's text: a search, a picture; recorded as an answer.

        Args:
            stage: of the work.
            source: the server's or model's name.
            asked: what is sent.
            get: gets it.
            pictures: how many pictures are paid for.
            retries: tries after the first one.
            keep: writes what belongs to the answer in the transaction that records it.
        """
        price = self.terms.price_of(source) if pictures else None
        cost = _micro(price, Tokens(), pictures)

        async def once(call_key: int) -> Kept:
            try:
                found = await get()
            except EtudeError as error:
                await self._failed(call_key, error.code, Tokens(), None if cost is None else 0)
                raise
            return await self._answered(call_key, found, Tokens(), cost, keep=keep)

        question = _question(stage, source, msgspec.json.encode(asked), Tokens(), cost)
        return (await self._asked(question, once, retries)).answer

    async def accept(self, said: Said) -> None:
        """Note that an answer passed every check, so that it may serve later runs, too."""
        if said.accepted:
            return
        async with self._desk.database.transaction() as work:
            await self._seat.fence(work)
            await ledger.accept(work, said.call_key)
        crash_point("authoring.call.accepted")

    async def _asked(
        self, question: Question, once: Callable[[int], Awaitable[Kept]], retries: int
    ) -> Kept:
        async with self._desk.database.read() as connection:
            found = await ledger.kept(connection, self._seat, question.stage, question.asked_sha256)
        if found is not None:
            return found
        for attempt in range(1, retries + 2):
            call_key = await self._begun(msgspec.structs.replace(question, attempt=attempt))
            try:
                return await once(call_key)
            except EtudeError as error:
                wait_s = pause_before_next(attempt, error)
                if wait_s is None or attempt > retries:
                    raise
            await self._desk.sleep(wait_s)
        raise AssertionError  # the last attempt returned or raised

    async def _begun(self, question: Question) -> int:
        """Write a call down before it is made, if it may be made."""
        now = self._desk.clock.now()
        async with self._desk.database.transaction() as work:
            await self._seat.fence(work)
            await self._require_room(work, question)
            call_key = await ledger.begin(work, self._seat, question, now)
        crash_point("authoring.call.begun")
        return call_key

    async def _require_room(self, work: UnitOfWork, question: Question) -> None:
        tokens, micro = question.most.all, question.cost_micro or 0
        await terms.hold_room(work, self.terms, self._seat.owner)
        spent = await ledger.spent_by_run(work.connection, self._seat.run_id)
        budget = self.terms.budget
        if unit := budget.exceeded(spent, tokens, micro):
            raise CourseBudgetSpentError(
                unit=unit, spent=_said(spent, unit), limit=budget.said(unit), stage=question.stage
            )
        await require_quota(work, self._desk, self._seat.owner, tokens, micro)

    async def _answered(
        self,
        call_key: int,
        answer: bytes,
        tokens: Tokens,
        cost: int | None,
        *,
        estimated: bool = False,
        keep: Callable[[UnitOfWork, bytes], Awaitable[None]] | None = None,
    ) -> Kept:
        crash_point("authoring.call.answered")
        async with self._desk.database.transaction() as work:
            await self._seat.fence(work)
            await ledger.end(
                work,
                call_key,
                self._desk.clock.now(),
                tokens=tokens,
                cost_micro=cost,
                estimated=estimated,
                answer=answer,
            )
            if keep is not None:
                await keep(work, answer)
        crash_point("authoring.call.recorded")
        return Kept(call_key=call_key, answer=answer)

    async def _failed(self, call_key: int, code: str, used: Tokens, cost: int | None) -> None:
        async with self._desk.database.transaction() as work:
            await self._seat.fence(work)
            await ledger.end(
                work,
                call_key,
                self._desk.clock.now(),
                tokens=used,
                cost_micro=cost,
                estimated=used.all > 0,
                error_code=code,
            )

    @staticmethod
    def _used(most: Tokens, heard: list[str], error: LlmError) -> Tokens:
        """Return what a failed call has probably cost: nothing, unless the model was at work."""
        if heard or isinstance(error, LlmTimeoutError):
            return Tokens(prompt=most.prompt, completion=tokens_of("".join(heard)))
        return Tokens()


def pause_before_next(attempt: int, error: EtudeError) -> float | None:
    """Return how long to wait after a failed attempt (from 1); None: asking again is pointless."""
    if isinstance(error, LlmError) and error.retry_is_pointless:
        return None
    if error.params.get("reason") in _DETERMINED:
        return None
    if not isinstance(error, LlmError) and error.status < 500:  # noqa: PLR2004 - RFC 9110 §15.6
        return None
    pause_s: float = min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S)
    pause_s *= 1 + _JITTER * secrets.randbelow(1000) / 1000
    if isinstance(error, LlmThrottledError):
        pause_s = max(pause_s, float(error.params["retry_after_s"]))
    return pause_s if pause_s <= PATIENCE_S else None


async def require_quota(
    work: UnitOfWork, desk: Desk, owner: str, tokens: int = 1, micro: int = 0
) -> None:
    """Raise `QuotaSpentError` if an owner's day, or the month, does not have so much left."""
    now = desk.clock.now()
    await terms.require_room(work.connection, desk.terms, owner, now, tokens, micro)


def _micro(price: Price | None, tokens: Tokens, pictures: int = 0) -> int | None:
    return None if price is None else price.micro(tokens, pictures)


def _said(spent: Spent, unit: str) -> float:
    return spent.micro / MICRO if unit == "money" else spent.tokens


def _question(stage: str, model: str, sent: bytes, most: Tokens, cost: int | None) -> Question:
    said = msgspec.json.encode(model) + sent
    return Question(
        stage=stage,
        asked_sha256=hashlib.sha256(said).hexdigest(),
        model=model,
        attempt=1,
        most=most,
        cost_micro=cost,
    )
