"""Letting a model reword a stored report, over real HTTP, on both databases.

What a model makes up is refused, what hangs delays nothing, and no answer is asked for twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from etude.cli.model import rewording
from etude.clock import RandomIds
from etude.events.ndjson import decode_line
from etude.examiner import repository, wordings
from etude.examiner.enqueue import EXAMINE, REWORD
from etude.examiner.examine_job import Examine
from etude.examiner.learner_data import reports_data
from etude.examiner.report import Report, read_report
from etude.examiner.repository import RevisionRow
from etude.examiner.reword_job import Reword
from etude.examiner.shelf import RubricShelf
from etude.examiner.tables import report
from etude.examiner.verify import verify
from etude.files import armed
from etude.jobs import Handler, JobRow, JobState, Pace, RetryPolicy, Runner, find
from etude.llm.chat import Chat, Endpoint
from etude.people.spending.amounts import Limit, Price
from etude.people.spending.ledger import Entry, everybodys
from etude.people.spending.paying import Payer
from etude.people.spending.terms import Terms
from etude.rubric.library import RubricLibrary
from etude.store import Database
from etude.testing.fake_llm import FakeModel, Hangs, Part, Says, Status
from etude.testing.samples import session_lines
from etude.testing.school import School

Run = Callable[..., Any]
SAMPLE = "violin-basic-strong"
LINES = [line for line in session_lines(SAMPLE) if b'"producer":"server"' not in line]
SESSION = decode_line(LINES[0], 1).session_id
PACE = Pace(concurrency=2, lease_s=30, poll_s=0.02)
RETRY = RetryPolicy(max_attempts=3, first_wait_s=0.05)
WAIT_S = 60.0


def template(prompt: str) -> str:
    """Return the text that a prompt asks to reword: a model that changes no fact repeats it."""
    return prompt.rpartition("\n\n")[2]


FAITHFUL = Says(lambda prompt: "Well: " + template(prompt))
INVENTED_EVENT = Says(lambda prompt: template(prompt) + " See [e-invented-7].")
INVENTED_NUMBER = Says(lambda prompt: template(prompt) + " That is 4711 more than before.")


@pytest.fixture
def school(database: Database, run: Run) -> School:
    made = School(database, run)
    run(made.furnish())
    made.upload(made.device("toy-1"), SESSION, b"\n".join(LINES) + b"\n")
    return made


class Workshop:
    """Runs the two jobs as the worker does, against a model that plays a script."""

    def __init__(
        self, school: School, folder: Path, url: str, total_s: float, terms: Terms
    ) -> None:
        self.school = school
        self.database = school.database
        self.key = school.row(SESSION).session_key
        self.shelf = RubricShelf(folder / "rubrics")
        self.endpoint = Endpoint(url=url, model="small", total_s=30)
        self.total_s = total_s
        self.terms = terms

    async def work(self, until: Callable[[], Awaitable[bool]]) -> None:
        clock = self.school.clock
        async with Chat(self.endpoint) as chat:
            ask = rewording(chat, Payer(self.database, clock, self.terms))
            reword = Reword(self.database, ask, "small", clock, RandomIds(), self.total_s)
            examine = Examine(self.database, self.shelf, clock, RandomIds(), with_model=True)
            runners = [self.runner({EXAMINE: examine}), self.runner({REWORD: reword})]
            for runner in runners:
                await runner.start()
            try:
                async with asyncio.timeout(WAIT_S):
                    while not await until():  # noqa: ASYNC110 - a row sends no event
                        await asyncio.sleep(0.01)
            finally:
                await asyncio.gather(*(runner.stop(grace_s=0.1) for runner in runners))

    def runner(self, handlers: Mapping[str, Handler]) -> Runner:
        # The school's clock stands still, so a retry would never come due: the runner has its own.
        return Runner(self.database, handlers, retries={REWORD: RETRY}, pace=PACE)

    async def job(self) -> JobRow | None:
        async with self.database.read() as connection:
            return await find(connection, REWORD, str(self.key))

    async def over(self) -> bool:
        job = await self.job()
        return job is not None and job.state in {JobState.DONE, JobState.DEAD}

    async def reported(self) -> bool:
        return await self.row(1) is not None

    async def revisions_of_all(self) -> dict[int, int]:
        async with self.database.read() as connection:
            rows = await connection.execute(select(report.c.session_key, report.c.revision))
            return {row.session_key: row.revision for row in rows}

    async def all_reported(self) -> bool:
        return all((await self.revisions_of_all()).values())

    async def row(self, number: int) -> RevisionRow | None:
        async with self.database.read() as connection:
            return await repository.revision(connection, self.key, number)

    async def reports(self) -> list[Report]:
        rows = [await self.row(number) for number in (1, 2, 3)]
        return [read_report(row.body) for row in rows if row is not None]

    async def entries(self) -> list[Entry]:
        async with self.database.read() as connection:
            return list((await everybodys(connection)).items)

    async def not_reworded(self) -> str | None:
        async with self.database.read() as connection:
            return (await repository.head(connection, self.key)).not_reworded

    async def answers(self) -> dict[str, str]:
        async with self.database.read() as connection:
            return await wordings.answers(connection, self.key)


@pytest.fixture
def workshop(school: School, tmp_path: Path, run: Run) -> Callable[..., Any]:
    def play(
        model: FakeModel,
        *,
        until: str = "over",
        total_s: float = 30.0,
        killed_at: str | None = None,
        terms: Terms | None = None,
    ) -> Workshop:
        kills = [killed_at]

        def crash(name: str) -> None:
            if name in kills:
                kills.clear()
                raise KilledError

        with model.serve() as url:
            made = Workshop(school, tmp_path, url, total_s, terms or Terms())
            with armed(crash):
                run(made.work(getattr(made, until)))
        return made

    return play


class KilledError(Exception):
    """Stands for a kill at a crash point: the transaction is not committed."""


def narratives(made: Report) -> list[tuple[str, str]]:
    chain = made.examiner_assessment.evidence_chain
    return [(item.narrative, item.narrative_source) for item in chain]


def scored(made: Report) -> int:
    return sum(one.score is not None for one in made.examiner_assessment.evidence_chain)


def test_a_faithful_rewording_becomes_the_next_revision(workshop: Any, run: Run) -> None:
    """The report by templates stays readable; the next one has the same digest and verifies."""
    model = FakeModel(usual=FAITHFUL)
    made = workshop(model)
    first, second = run(made.reports())
    assert {source for _, source in narratives(first)} == {"template"}
    assert "model" in {source for _, source in narratives(second)}
    assert (second.revision, second.digest) == (2, first.digest)
    assert second.examiner_assessment.overall_score == first.examiner_assessment.overall_score
    assert len(model.asked) == scored(first) == len(run(made.answers()))
    rubric = RubricLibrary.load().get(first.rubric_key)
    assert verify(second, [decode_line(line, 1) for line in LINES], rubric).holds


@pytest.mark.parametrize("part", [INVENTED_EVENT, INVENTED_NUMBER])
def test_what_a_model_makes_up_is_refused(part: Part, workshop: Any, run: Run) -> None:
    """An invented event or number: the template stands, and there is no second revision."""
    model = FakeModel(usual=part)
    made = workshop(model)
    (only,) = run(made.reports())
    assert {source for _, source in narratives(only)} == {"template"}
    assert model.asked
    assert run(made.job()).state is JobState.DONE


def test_a_hanging_model_delays_nothing(workshop: Any, run: Run) -> None:
    """The report by templates is stored while the model has not said a word."""
    model = FakeModel(usual=Hangs())
    made = workshop(model, until="reported", total_s=1000)
    (only,) = run(made.reports())
    assert {source for _, source in narratives(only)} == {"template"}


def test_many_hanging_questions_delay_no_report(workshop: Any, school: School, run: Run) -> None:
    """More sessions than the model's runner has places: each has its report all the same."""
    sessions = [f"{SESSION}-{number}" for number in range(4)]
    for name in sessions:
        body = b"\n".join(LINES).replace(SESSION.encode(), name.encode()) + b"\n"
        school.upload(school.device("toy-1"), name, body)
    keys = {school.row(name).session_key for name in (*sessions, SESSION)}
    made = workshop(FakeModel(usual=Hangs()), until="all_reported", total_s=1000)
    assert run(made.revisions_of_all()) == dict.fromkeys(keys, 1)


def test_a_model_that_always_hangs_is_given_up(workshop: Any, run: Run) -> None:
    """After the last attempt the job is dead with the time-out's code; the template stands."""
    made = workshop(FakeModel(usual=Hangs()), total_s=0.2)
    assert len(run(made.reports())) == 1
    job = run(made.job())
    assert (job.state, job.error_code) == (JobState.DEAD, "LLM_TIMEOUT")


def test_a_refusal_is_not_repeated(workshop: Any, run: Run) -> None:
    """A wrong key: one request, no other question, no other attempt."""
    model = FakeModel(usual=Status(401))
    made = workshop(model)
    assert len(run(made.reports())) == 1
    assert run(made.job()).state is JobState.DONE
    assert len(model.asked) == 1


def test_no_answer_is_asked_for_twice(workshop: Any, run: Run) -> None:
    """A failure in the middle: the next attempt asks only what has no answer yet."""
    model = FakeModel([FAITHFUL, Status(500)], usual=FAITHFUL)
    made = workshop(model)
    first, _ = run(made.reports())
    prompts = [asked.last for asked in model.asked]
    assert len(prompts) == scored(first) + 1  # the one that failed
    assert len(set(prompts)) == scored(first)


@pytest.mark.parametrize(
    ("instant", "repeated"), [("examiner.reword.answered", 1), ("examiner.reword.revised", 0)]
)
def test_a_kill_repeats_at_most_the_call_in_flight(
    instant: str, repeated: int, workshop: Any, run: Run
) -> None:
    """Stopped at a crash point and run again, the model gets that one question again, or none."""
    model = FakeModel(usual=FAITHFUL)
    made = workshop(model, killed_at=instant)
    reports = run(made.reports())
    assert len(reports) == 2
    assert len(model.asked) == scored(reports[0]) + repeated


def test_answers_go_with_the_learner(workshop: Any, school: School, run: Run) -> None:
    """Erasing removes every answer of the session with its reports."""
    made = workshop(FakeModel(usual=FAITHFUL))
    assert run(made.answers())

    async def erase() -> None:
        async with school.database.transaction() as work:
            await reports_data().erase_learner(work, school.learners["anna"])

    run(erase())
    assert run(made.answers()) == {}
    assert run(made.reports()) == []


def test_each_question_stands_in_the_ledger(workshop: Any, school: School, run: Run) -> None:
    """With tokens and cost, drawn on the learner's day, for the session; one row a question."""
    price = Price(prompt=Decimal(2), completion=Decimal(4))
    model = FakeModel(usual=FAITHFUL)
    made = workshop(model, terms=Terms(prices={"small": price}))
    entries = run(made.entries())
    assert len(entries) == len(model.asked) > 0
    for one in entries:
        told = (one.owner, one.subject, one.stage, one.state, one.error_code)
        learner = school.learners["anna"]
        assert told == (f"learner:{learner}", f"session:{made.key}", "report", "answered", None)
        assert one.cost_micro == 2 * one.prompt_tokens + 4 * one.completion_tokens > 0
        assert one.ended_at is not None
    assert run(made.not_reworded()) is None


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        (Terms(quota=Limit(tokens=100)), "QUOTA_SPENT"),
        (Terms(month=Limit(tokens=100)), "MONTH_QUOTA_SPENT"),
        (Terms(month=Limit(micro=5)), "PRICE_MISSING"),
    ],
)
def test_where_no_more_may_be_spent_the_template_stays(
    workshop: Any, run: Run, terms: Terms, code: str
) -> None:
    """No question is asked, the job is done at once, and the report says why."""
    model = FakeModel(usual=FAITHFUL)
    made = workshop(model, terms=terms)
    (only,) = run(made.reports())
    assert {source for _, source in narratives(only)} == {"template"}
    assert model.asked == []
    assert run(made.job()).state is JobState.DONE
    assert run(made.not_reworded()) == code
    assert run(made.entries()) == []


def test_a_quota_that_ends_in_the_middle(workshop: Any, run: Run) -> None:
    """What was answered is used; the rest keeps its template, and the report says why.

    The first answer leaves 400 tokens, and a question can use more than the 400 of its answer.
    """
    words = Says(FAITHFUL.words, prompt_tokens=400, completion_tokens=100)
    model = FakeModel(usual=words)
    made = workshop(model, terms=Terms(quota=Limit(tokens=900)))
    first, second = run(made.reports())
    sources = [source for _, source in narratives(second)]
    assert 0 < sources.count("model") == len(model.asked) < scored(first)
    assert run(made.not_reworded()) == "QUOTA_SPENT"
