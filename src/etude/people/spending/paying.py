"""Asking a model in somebody's name: only if it may cost so much, and never without a trace.

A call stands in the ledger at its highest before it is made, so that a process that dies in the
middle of it leaves the sums too large and never too small. What was said is not kept here.
"""

from etude.clock import Clock
from etude.files import crash_point
from etude.llm.answers import Answer
from etude.llm.chat import Chat, Request
from etude.llm.errors import LlmError
from etude.people.spending import ledger
from etude.people.spending.amounts import Price, Tokens
from etude.people.spending.ledger import Place, Question
from etude.people.spending.terms import Terms, hold_room, require_room
from etude.people.spending.used import cost, most_tokens, used_by, used_in_vain
from etude.store import Database


class Payer:
    """Asks on an installation's terms. Lives as long as the process."""

    def __init__(self, database: Database, clock: Clock, terms: Terms) -> None:
        """Nothing is asked yet."""
        self._database = database
        self._clock = clock
        self._terms = terms

    async def ask(
        self, chat: Chat, request: Request, *, owner: str, subject: str, stage: str
    ) -> Answer:
        """Return a model's answer, paid for by `owner`.

        Args:
            chat: the model.
            request: what is asked; `max_tokens` bounds what it costs.
            owner: whose day is drawn on: `learner:<key>`.
            subject: what it is for: `session:<key>`.
            stage: which kind of question: `report`.

        Raises:
            LlmError: there is no answer.
            QuotaSpentError, PriceMissingError: it was not asked.
        """
        model = request.model or chat.endpoint.model
        price = self._terms.price_of(model)
        most = most_tokens(request)
        place = Place(subject=subject, run_id="", part=ledger.NO_PART, owner=owner)
        question = Question(
            stage=stage,
            asked_sha256="",
            model=model,
            attempt=1,
            most=most,
            cost_micro=cost(price, most),
        )
        call_key = await self._begun(place, question)
        try:
            answer = await chat.ask(request)
        except LlmError as error:
            used = used_in_vain(most, error)
            await self._ended(call_key, used, price, estimated=used.all > 0, code=error.code)
            raise
        used, estimated = used_by(answer, most)
        await self._ended(call_key, used, price, estimated=estimated)
        return answer

    async def _begun(self, place: Place, question: Question) -> int:
        now = self._clock.now()
        micro = question.cost_micro or 0
        async with self._database.transaction() as work:
            await hold_room(work, self._terms, place.owner)
            await require_room(
                work.connection, self._terms, place.owner, now, question.most.all, micro
            )
            call_key = await ledger.begin(work, place, question, now)
        crash_point("people.call.begun")
        return call_key

    async def _ended(
        self,
        call_key: int,
        used: Tokens,
        price: Price | None,
        *,
        estimated: bool,
        code: str | None = None,
    ) -> None:
        crash_point("people.call.answered")
        async with self._database.transaction() as work:
            await ledger.end(
                work,
                call_key,
                self._clock.now(),
                tokens=used,
                cost_micro=cost(price, used),
                estimated=estimated,
                error_code=code,
            )
