"""How `etude course` shows where a course stands, and what it has cost."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from etude.authoring.model.accounts import Account
from etude.authoring.publication import Standing
from etude.authoring.records import Course, CourseStatus, Problem
from etude.cli import terminal
from etude.cli.local import show_table
from etude.i18n import text
from etude.people.spending.amounts import MICRO
from etude.people.spending.ledger import Call


class Shown(NamedTuple):
    """Everything that is shown of a course."""

    course: Course
    silent: Sequence[str]
    standing: Standing
    account: Account | None


def show_course(shown: Shown, *, as_json: bool) -> None:
    """Print where a course stands."""
    course, silent, standing, account = shown
    modules = [
        {"index": one.index, "status": one.status, "classroom_id": one.classroom_id}
        for one in course.modules
    ]
    told = {
        "course_id": course.course_id,
        "status": course.status,
        "title": course.title,
        "error_code": course.error_code,
        "published_version": standing.version,
        "published_to": standing.target or None,
        "drifted_modules": list(standing.drifted),
        "silent_sentences": list(silent),
        "usage": None if account is None else msgspec.to_builtins(account),
        "problems": [msgspec.to_builtins(one) for one in _problems(course)],
    }
    if as_json:
        terminal.print_json(told | {"modules": modules})
        return
    terminal.print_text(f"{course.course_id}\t{course.status}\t{course.title}")
    titles = (
        {one.module_id: one.title for one in course.framework.modules} if course.framework else {}
    )
    for module in course.modules:
        line = f"  {module.index}\t{module.status}\t{titles.get(module.module_id, '')}"
        terminal.print_text(line + (f"\t{module.error_code}" if module.error_code else ""))
    locale = terminal.locale()
    for problem in _problems(course):
        terminal.print_note(f"{problem.code} {problem.path} {problem.detail}".strip())
    if account is not None:
        terminal.print_text(_cost(account, locale))
    if course.status is CourseStatus.FRAMEWORK_READY:
        if silent:
            told_of = text("cli.course.silent", locale, count=len(silent), first=silent[0])
            terminal.print_note(told_of)
        terminal.print_note(text("cli.course.confirm", locale, course=course.course_id))
    if standing.version is not None:
        where = f" → {standing.target}" if standing.target else ""
        line = text("cli.course.published", locale, version=standing.version)
        terminal.print_text(line + where)
        if standing.drifted:
            listed = ", ".join(map(str, standing.drifted))
            terminal.print_note(text("cli.course.drifted", locale, modules=listed))


def show_publication(course_id: str, version: int, *, new: bool) -> None:
    """Print which version of a course is published now, and whether it was before."""
    locale = terminal.locale()
    heads = [text(f"cli.course.head.{name}", locale) for name in ("course", "version", "new")]
    is_new = text(f"cli.course.{'yes' if new else 'no'}", locale)
    show_table(heads, [(course_id, str(version), is_new)])


def call_row(call: Call, *, answers: bool) -> dict[str, Any]:
    """Return a call of the ledger as a row; with its answer if that is wanted."""
    row = {
        "asked_at": call.asked_at.isoformat(timespec="seconds"),
        "module": call.part if call.part >= 0 else None,
        "stage": call.stage,
        "attempt": call.attempt,
        "model": call.model,
        "state": call.error_code or call.state,
        "prompt_tokens": call.prompt_tokens,
        "completion_tokens": call.completion_tokens,
        "cost": None if call.cost_micro is None else call.cost_micro / MICRO,
    }
    if answers:
        row["answer"] = None if call.answer is None else msgspec.json.decode(call.answer)
    return row


def _problems(course: Course) -> Sequence[Problem]:
    return course.run.problems if course.run else ()


def _cost(account: Account, locale: str) -> str:
    tokens = account.prompt_tokens + account.completion_tokens
    cost = "–" if account.cost is None else f"{account.cost:.4f}"  # noqa: RUF001 - a dash for nothing
    about = "≤ " if account.estimated else ""
    return text(
        "cli.course.usage", locale, calls=account.calls, tokens=f"{about}{tokens}", cost=cost
    )
