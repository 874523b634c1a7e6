"""What is spent on models: bounded a day and a month, in one ledger, whatever dies; on both."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from etude.files import armed
from etude.llm.chat import Chat, Endpoint, Message, Request
from etude.llm.errors import LlmBrokenError, LlmTimeoutError
from etude.people.learners import add_learner
from etude.people.own_data import export_learner
from etude.people.spending import ledger
from etude.people.spending.amounts import Limit
from etude.people.spending.errors import MonthSpentError, QuotaSpentError
from etude.people.spending.ledger import KEPT, Entry
from etude.people.spending.paying import Payer
from etude.people.spending.terms import Terms
from etude.store import Database
from etude.testing.clocks import ManualClock
from etude.testing.fake_llm import FakeModel, Hangs, Says, Status

DAY_S = 86_400.0
WORDS = Request(messages=(Message("user", "How was bar 5?"),), max_tokens=100)
ANSWER = Says("Fine.", prompt_tokens=40, completion_tokens=20)


class Crash(BaseException):
    """The process ends here."""


class Desk:
    """Asks on terms, at a time that the test says."""

    def __init__(self, database: Database, run: Callable[..., Any], model: FakeModel) -> None:
        self.database, self.run, self.model = database, run, model
        self.clock = ManualClock(datetime(2026, 3, 30, 9, 0, tzinfo=UTC))
        self.url = ""

    def ask(self, terms: Terms, owner: str = "learner:1", total_s: float = 30) -> str:
        async def asked() -> str:
            payer = Payer(self.database, self.clock, terms)
            async with Chat(Endpoint(url=self.url, model="small", total_s=total_s)) as chat:
                answer = await payer.ask(chat, WORDS, owner=owner, subject="tutor", stage="tutor:x")
                return answer.text

        text: str = self.run(asked())
        return text

    def entries(self) -> list[Entry]:
        async def read() -> list[Entry]:
            async with self.database.read() as connection:
                return list((await ledger.everybodys(connection)).items)

        found: list[Entry] = self.run(read())
        return found


@pytest.fixture
def desk(database: Database, run: Callable[..., Any]) -> Iterator[Desk]:
    made = Desk(database, run, FakeModel(usual=ANSWER))
    with made.model.serve() as url:
        made.url = url
        yield made


def test_a_day_is_one_owner_s(desk: Desk) -> None:
    """Used up by what was answered and the next one's highest; another owner's is another; UTC."""
    terms = Terms(quota=Limit(tokens=200))
    assert (desk.ask(terms), desk.ask(terms)) == ("Fine.", "Fine.")
    with pytest.raises(QuotaSpentError) as refused:
        desk.ask(terms)
    assert refused.value.params["retry_after_s"] == 15 * 3600
    assert len(desk.model.asked) == len(desk.entries()) == 2
    assert desk.ask(terms, owner="learner:2") == "Fine."
    desk.clock.advance(15 * 3600)
    assert desk.ask(terms) == "Fine."


def test_a_month_is_everybody_s(desk: Desk) -> None:
    """Whoever asks draws on it; the next day nothing is left still, the next month all is."""
    terms = Terms(month=Limit(tokens=200))
    desk.ask(terms)
    desk.ask(terms, owner="device:1")
    with pytest.raises(MonthSpentError) as refused:
        desk.ask(terms, owner="device:2")
    assert refused.value.params["retry_after_s"] == 15 * 3600 + DAY_S
    desk.clock.advance(DAY_S)
    with pytest.raises(MonthSpentError):
        desk.ask(terms)
    desk.clock.advance(DAY_S)
    assert desk.ask(terms) == "Fine."


def test_many_at_once_do_not_exceed_it(desk: Desk) -> None:
    """Ten owners ask together, and there is room for three: three are asked."""
    terms = Terms(month=Limit(tokens=3 * 150))
    desk.model.usual = Says("Fine.", prompt_tokens=40, completion_tokens=100)

    async def asked(chat: Chat, number: int) -> bool:
        payer = Payer(desk.database, desk.clock, terms)
        try:
            await payer.ask(chat, WORDS, owner=f"learner:{number}", subject="t", stage="t")
        except MonthSpentError:
            return False
        return True

    async def all_of_them() -> list[bool]:
        async with Chat(Endpoint(url=desk.url, model="small")) as chat:
            return await asyncio.gather(*(asked(chat, number) for number in range(10)))

    assert sum(desk.run(all_of_them())) == len(desk.model.asked) == 3


@pytest.mark.parametrize(
    ("part", "error", "code", "counts"),
    [
        (Status(500), LlmBrokenError, "LLM_BROKEN", False),
        (Hangs(), LlmTimeoutError, "LLM_TIMEOUT", True),
    ],
)
def test_a_question_in_vain(
    desk: Desk, part: Any, error: type[Exception], code: str, *, counts: bool
) -> None:
    """A refusal cost nothing; where the model may have worked, it counts at its highest."""
    desk.model.script.append(part)
    with pytest.raises(error):
        desk.ask(Terms(), total_s=2)
    (one,) = desk.entries()
    assert (one.state, one.error_code, one.estimated) == ("failed", code, counts)
    assert (one.completion_tokens == 100) is counts


@pytest.mark.parametrize(("point", "asked"), [("begun", 0), ("answered", 1)])
def test_a_kill_leaves_the_sum_too_large(desk: Desk, point: str, asked: int) -> None:
    """Before the question or after the answer: the row stays at its highest."""

    def crash(name: str) -> None:
        if name == f"people.call.{point}":
            raise Crash

    with armed(crash), pytest.raises(Crash):
        desk.ask(Terms())
    assert len(desk.model.asked) == asked
    (one,) = desk.entries()
    assert (one.state, one.ended_at, one.completion_tokens) == ("asked", None, 100)


def test_a_learners_export_has_the_calls_in_their_name(desk: Desk) -> None:
    """When, for what and at what cost; nobody else's, and no key."""

    async def furnish() -> int:
        async with desk.database.transaction() as work:
            made = await add_learner(
                work.connection, learner_id="anna", display_name="Anna", locale="en",
                now=desk.clock.now(),
            )  # fmt: skip
            return made.learner_key

    async def exported(learner_key: int) -> list[dict[str, Any]]:
        files = export_learner(desk.database, learner_key)
        found = [one async for one in files if one.path == "model_calls.jsonl"]
        lines = b"".join([chunk async for chunk in found[0].chunks]).splitlines()
        return [json.loads(one) for one in lines]

    learner_key = desk.run(furnish())
    desk.ask(Terms(), owner=f"learner:{learner_key}")
    desk.ask(Terms(), owner=f"learner:{learner_key}1")
    (shown,) = desk.run(exported(learner_key))
    assert (shown["stage"], shown["prompt_tokens"]) == ("tutor:x", 40)
    assert not {"owner", "subject", "call_key"} & shown.keys()


def test_old_calls_go(desk: Desk) -> None:
    """After more than a year; a younger one stays, and a course's, which is asked for again."""
    place = ledger.Place(subject="course:1", run_id="r", part=0, owner="host:0")
    course = ledger.Question(
        stage="outlines", asked_sha256="a" * 64, model="small", attempt=1,
        most=ledger.Tokens(prompt=1), cost_micro=None,
    )  # fmt: skip

    async def begin() -> None:
        async with desk.database.transaction() as work:
            await ledger.begin(work, place, course, desk.clock.now())

    async def forget() -> None:
        async with desk.database.transaction() as work:
            await ledger.forget_old_calls(work, desk.clock.now())

    desk.run(begin())
    desk.ask(Terms(), owner="learner:1")
    desk.clock.advance((KEPT + timedelta(seconds=1)).total_seconds())
    desk.ask(Terms(), owner="learner:2")
    desk.run(forget())
    assert [one.owner for one in desk.entries()] == ["host:0", "learner:2"]
