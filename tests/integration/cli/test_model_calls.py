"""`etude model calls`: who asked for what and what it cost; on both databases."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from etude.cli import exits, model_calls
from etude.cli.app import run as run_command
from etude.clock import SystemClock
from etude.people.learners import add_learner
from etude.people.paging import MAX_LIMIT
from etude.people.spending import ledger
from etude.people.spending.amounts import Tokens
from etude.people.spending.ledger import NO_PART, Place, Question
from etude.people.spending.terms import month_of
from etude.store import Database

MONTH = month_of(SystemClock().now())


class Desk:
    """A ledger, and the command at a terminal."""

    def __init__(
        self, database: Database, run: Callable[..., Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._database, self._run, self._capsys = database, run, capsys

    def learner(self, learner_id: str) -> str:
        async def add() -> str:
            async with self._database.transaction() as work:
                made = await add_learner(
                    work.connection,
                    learner_id=learner_id,
                    display_name="Anna",
                    locale="en",
                    now=MONTH,
                )
            return f"learner:{made.learner_key}"

        name: str = self._run(add())
        return name

    def enter(self, owner: str, asked_at: datetime, *, times: int = 1, known: bool = True) -> None:
        """Note calls of 60 tokens and 0.0012; what is not `known` has no answer."""
        place = Place(subject="tutor", run_id="", part=NO_PART, owner=owner)
        tokens = Tokens(prompt=40, completion=20)
        question = Question(
            stage="report", asked_sha256="", model="small", attempt=1, most=tokens, cost_micro=1200
        )

        async def note() -> None:
            async with self._database.transaction() as work:
                for _ in range(times):
                    key = await ledger.begin(work, place, question, asked_at)
                    if known:
                        at = asked_at + timedelta(seconds=1)
                        await ledger.end(work, key, at, tokens=tokens, cost_micro=1200)

        self._run(note())

    def lines(self, *options: str) -> list[str]:
        code = run_command([*options, "model", "calls"])
        out, err = self._capsys.readouterr()
        assert (code, err) == (exits.OK, "")
        return [line for line in out.splitlines() if line]

    def json(self, *options: str) -> Any:
        code = run_command(["model", "calls", "--json", *options])
        out, err = self._capsys.readouterr()
        assert code == exits.OK, err
        return json.loads(out)


@pytest.fixture
def desk(
    database: Database,
    database_url: str,
    run: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Desk:
    monkeypatch.setenv("ETUDE_DATA", str(tmp_path))
    monkeypatch.setenv("ETUDE_DATABASE_URL", database_url)
    monkeypatch.delenv("ETUDE_LLM_MONTH", raising=False)
    # The month is the one that the calls are of, also where the next begins meanwhile.
    monkeypatch.setattr(model_calls, "month_of", lambda _: MONTH)
    return Desk(database, run, capsys)


@pytest.mark.parametrize(
    ("locale", "first", "last"),
    [
        ("en", "For whom", "This month (UTC): 120 of 1000 tokens, cost 0.0024 of 2.5000."),
        ("zh-CN", "归属", "本月（UTC）：词元 120（上限 1000），费用 0.0024（上限 2.5000）。"),  # noqa: RUF001 - Chinese
    ],
)
def test_a_table_with_heads_and_the_month_below(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, locale: str, first: str, last: str
) -> None:
    """Learners by their ids, a gateway by its own; what has no answer counts at its highest."""
    monkeypatch.setenv("ETUDE_LLM_MONTH", "tokens=1000,money=2.50")
    desk.enter(desk.learner("anna"), MONTH)
    desk.enter("gateway:house:8000", MONTH, known=False)
    heads, anna, gateway, month = desk.lines("--locale", locale)
    assert first in heads
    assert anna.split() == [
        MONTH.isoformat(), "learner", "anna", "tutor", "report", "small", "answered", "60",
        "0.0012",
    ]  # fmt: skip
    assert "gateway house:8000" in gateway
    assert gateway.split()[-4:] == ["asked", "≤", "60", "0.0012"]
    assert month == last


def test_without_calls_or_a_limit_it_says_so(desk: Desk) -> None:
    """The heads alone, and a sum of nothing."""
    heads, month = desk.lines()
    assert heads.startswith("Asked")
    assert month == "This month (UTC): 0 tokens, cost 0.0000."


def test_it_begins_with_the_month_or_when_it_is_told_to(desk: Desk) -> None:
    """Also on the second page, and with a call that was entered late; the month's sum stays."""
    long_ago = MONTH - timedelta(days=40)
    desk.enter("host:0", MONTH + timedelta(seconds=5))
    desk.enter("learner:999", MONTH - timedelta(seconds=1), times=MAX_LIMIT)
    desk.enter("host:0", MONTH)
    desk.enter("host:0", long_ago)
    found = desk.json()
    assert [one["asked_at"] for one in found["items"]] == [
        stamp(MONTH + timedelta(seconds=5)),
        stamp(MONTH),
    ]
    assert found["items"][0] == {
        "asked_at": stamp(MONTH + timedelta(seconds=5)),
        "ended_at": stamp(MONTH + timedelta(seconds=6)),
        "owner": {"kind": "host", "key": 0, "id": None},
        "subject": "tutor",
        "stage": "report",
        "model": "small",
        "state": "answered",
        "error_code": None,
        "prompt_tokens": 40,
        "completion_tokens": 20,
        "estimated": False,
        "cost": 0.0012,
    }
    month = {"tokens": 120, "cost": 0.0024, "most_tokens": None, "most_cost": None}
    assert found["month"] == month
    earlier = desk.json("--since", (MONTH - timedelta(seconds=1)).isoformat())
    assert len(earlier["items"]) == MAX_LIMIT + 2
    assert earlier["month"] == month
    assert len(desk.json("--since", long_ago.isoformat())["items"]) == MAX_LIMIT + 3


@pytest.mark.usefixtures("desk")
def test_a_time_without_an_offset_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """It names no instant; nothing is listed."""
    assert run_command(["model", "calls", "--since", "2026-09-01T08:00:00"]) != exits.OK
    out, err = capsys.readouterr()
    assert out == ""
    assert "TIME_OUT_OF_RANGE" in err


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
