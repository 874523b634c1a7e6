"""What courses have cost, as it is shown: usage beside a course, and its ledger."""

from datetime import datetime
from typing import Any

import msgspec

from etude.authoring.model.accounts import Account
from etude.authoring.records import Problem
from etude.people.spending.amounts import MICRO
from etude.people.spending.ledger import Call


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class SourceView(_View, frozen=True, kw_only=True):
    """A page that a search found for a course."""

    title: str
    url: str


class UsageView(_View, frozen=True, kw_only=True):
    """What a course has cost; `cost` is in the currency of `ETUDE_LLM_PRICES`, null without them.

    `estimated`: some of it is at its highest, because an answer was lost or not counted.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost: float | None
    sources: tuple[SourceView, ...]
    search_error: str | None


class ProblemView(_View, frozen=True, kw_only=True):
    """One reason why a run failed."""

    code: str
    path: str
    detail: str


class CallView(_View, frozen=True, kw_only=True):
    """A call. `moduleIndex` null = the framework; `state` `asked`: no answer was recorded (yet).

    Answers come on request, the newest ones, 16 MiB altogether.
    """

    run_id: str
    module_index: int | None
    stage: str
    attempt: int
    asked_sha256: str
    model: str
    state: str
    accepted: bool
    error_code: str | None
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    cost: float | None
    asked_at: datetime
    ended_at: datetime | None
    answer: Any = None


class CallList(_View, frozen=True, kw_only=True):
    """The newest thousand calls of a course, oldest first."""

    items: tuple[CallView, ...]


def usage_view(account: Account | None) -> UsageView | None:
    """Return what a course has cost as it is shown."""
    if account is None:
        return None
    return UsageView(
        calls=account.calls,
        prompt_tokens=account.prompt_tokens,
        completion_tokens=account.completion_tokens,
        estimated=account.estimated,
        cost=account.cost,
        sources=tuple(SourceView(title=one.title, url=one.url) for one in account.sources),
        search_error=account.search_error,
    )


def problem_view(problem: Problem) -> ProblemView:
    """Return a reason of a failure as it is shown."""
    return ProblemView(code=problem.code, path=problem.path, detail=problem.detail)


def call_view(call: Call) -> CallView:
    """Return a call as it is shown."""
    return CallView(
        run_id=call.run_id,
        module_index=call.part if call.part >= 0 else None,
        stage=call.stage,
        attempt=call.attempt,
        asked_sha256=call.asked_sha256,
        model=call.model,
        state=call.state,
        accepted=call.accepted,
        error_code=call.error_code,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        estimated=call.estimated,
        cost=None if call.cost_micro is None else call.cost_micro / MICRO,
        asked_at=call.asked_at,
        ended_at=call.ended_at,
        answer=None if call.answer is None else msgspec.json.decode(call.answer),
    )
