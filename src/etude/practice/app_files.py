"""App files: YAML of our own (strict) and the older runtime's `apps.json` (lenient to extra keys).

Every mistake of a file is found in one go and names its line. What asks for a verdict is refused
in both (`docs/rules.md 19`).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from etude.documents import Document, DocumentInvalidError, check, read
from etude.documents.errors import DocumentSyntaxError, error_of
from etude.errors import EtudeError
from etude.practice.app_shapes import AppShape, AppsShape, TaskShape
from etude.practice.errors import (
    AppFileUnreadableError,
    AppTimingError,
    AppVerdictError,
)
from etude.practice.older_apps import modernised
from etude.practice.records import LISTEN_RATIO_MAX, LISTEN_RATIO_MIN, Mode
from etude.practice.tasks import ACTIVITIES, Activity, App, Assessment, Task, Timing

VERDICTS: Final = frozenset(
    {"threshold", "max_retry", "retry_count", "passed", "level", "grade", "good", "bad"}
    | {"score", "verdict", "judge"}
)
"""Keys that ask for a verdict."""

_TEXTS: Final = frozenset({"transcripts", "sentences"})
_STEPS: Final = frozenset({"steps", "step", "type", "action", "skill"})
_CHECK_IN_MS: Final = 60_000
_ANSWER_MS: Final = 8_000

_Place = tuple[str | int, ...]


def read_app_file(file: Path) -> list[tuple[int, App]]:
    """Read one file: its apps, each with the line where it begins.

    Raises:
        AppFileUnreadableError: it cannot be read.
        DocumentInvalidError: it cannot be used; its parts name every mistake with its line.
    """
    name, older = str(file), file.suffix == ".json"
    document = _read(file, older=older)
    verdicts = [
        AppVerdictError(file=name, line=document.line(path), key=str(key))
        for path, key in _verdicts(document.value, (), in_step=False)
    ]
    if older:
        document = modernised(document)
    shape = AppsShape if older else AppShape
    refused = {error.params["line"] for error in verdicts}
    mistakes = [*document.mistakes, *check(document, shape)]
    parts: list[EtudeError] = [
        *verdicts,
        *(error_of(one, name) for one in mistakes if one.line not in refused),
    ]
    apps: tuple[AppShape, ...] = ()
    if not parts:
        if older:
            apps = msgspec.convert(document.value, AppsShape).apps
        else:
            apps = (msgspec.convert(document.value, AppShape),)
        for index, app in enumerate(apps):
            parts += _broken_rules(document, name, app, ("apps", index) if older else ())
    if parts:
        parts.sort(key=lambda part: int(part.params["line"]))
        raise DocumentInvalidError(*parts, file=name, mistakes=len(parts))
    places: list[_Place] = [("apps", index) if older else () for index in range(len(apps))]
    return [(document.line(place), _app(app)) for place, app in zip(places, apps, strict=True)]


def _read(file: Path, *, older: bool) -> Document:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "UTF-8"
        raise AppFileUnreadableError(file=str(file), reason=reason) from error
    if not older:
        return _joined(read(text))
    try:
        json.loads(text)  # YAML that is no JSON is no `apps.json`
    except (json.JSONDecodeError, RecursionError) as error:
        line, reason = getattr(error, "lineno", 1), getattr(error, "msg", "too deep")
        part = DocumentSyntaxError(file=str(file), line=line, path="/", reason=reason)
        raise DocumentInvalidError(part, file=str(file), mistakes=1) from error
    return _joined(read(text.replace("\t", " ")))


def _joined(document: Document) -> Document:
    """Make one character of an escaped pair of surrogates, as JSON means it."""

    def whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, list):
            return [whole(one) for one in value]
        return {k: whole(one) for k, one in value.items()} if isinstance(value, dict) else value

    return msgspec.structs.replace(document, value=whole(document.value))


def _verdicts(value: object, path: _Place, *, in_step: bool) -> Iterator[tuple[_Place, str]]:
    """Yield what asks for a verdict, by its path; words to be read may be any."""
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _verdicts(one, (*path, index), in_step=in_step)
    elif isinstance(value, dict):
        for key, one in value.items():
            name = key.casefold()
            if name in VERDICTS:
                yield (*path, key), key
            elif name not in _TEXTS:
                yield from _verdicts(one, (*path, key), in_step=in_step or name in _STEPS)
    elif in_step and isinstance(value, str) and value.casefold() == "judge":
        yield path, value


def _broken_rules(
    document: Document, file: str, app: AppShape, place: _Place
) -> Iterator[EtudeError]:
    """Yield what a shape cannot say: tasks twice, activities and timings of other modes."""
    seen: set[str] = set()
    for index, task in enumerate(app.tasks):
        at = (*place, "tasks", index)
        mode = _mode(task)
        if task.task_id in seen:
            yield error_of(document.mistake((*at, "task_id"), "twice", name=task.task_id), file)
        seen.add(task.task_id)
        if task.activity is not None and task.activity not in ACTIVITIES[mode]:
            known = ", ".join(one.value for one in ACTIVITIES[mode])
            yield error_of(document.mistake((*at, "activity"), "not_one_of", known=known), file)
        timing = _timing(task)
        if (timing is Timing.INLINE) != (mode is Mode.INLINE):
            line = document.line((*at, "assessment", "timing"))
            yield AppTimingError(file=file, line=line, mode=mode.value, timing=timing.value)


def _app(shape: AppShape) -> App:
    tasks = {one.task_id: _task(shape, one) for one in shape.tasks}
    return App(
        app_id=shape.app_id,
        title=shape.title or shape.app_id,
        tasks=tasks,
        assignment_phrases=shape.assignment_phrases,
    )


def _task(app: AppShape, shape: TaskShape) -> Task:
    mode = _mode(shape)
    activity = shape.activity or ACTIVITIES[mode][0]
    usual_ms = {Activity.CHECK_IN: _CHECK_IN_MS}.get(activity)
    if mode is Mode.INLINE:
        usual_ms = _ANSWER_MS
    return Task(
        app_id=app.app_id,
        task_id=shape.task_id,
        mode=mode,
        activity=activity,
        title=shape.title,
        language=shape.language or app.language,
        enter_prompt=shape.enter_prompt,
        entry_phrases=shape.entry_phrases,
        exit_phrases=shape.exit_phrases,
        tools=shape.tools,
        listen_ratio=min(max(shape.listen_ratio, LISTEN_RATIO_MIN), LISTEN_RATIO_MAX),
        assessment=Assessment(
            enabled=shape.assessment.enabled,
            methods=shape.assessment.methods,
            timing=_timing(shape),
        ),
        rubric=None if shape.rubric is None else msgspec.to_builtins(shape.rubric),
        transcripts=shape.transcripts,
        sentences=shape.sentences,
        repeat=shape.repeat,
        window_ms=shape.window_ms or usual_ms,
        rounds=shape.rounds,
    )


def _mode(shape: TaskShape) -> Mode:
    """Return the mode; `FOLLOW_READ` is what the device's specification calls `SHADOWING`."""
    return Mode.SHADOWING if shape.mode == "FOLLOW_READ" else Mode(shape.mode)


def _timing(shape: TaskShape) -> Timing:
    said = shape.assessment.timing
    if said is None and shape.assessment.defer:
        return Timing.DEFERRED
    return said or (Timing.INLINE if _mode(shape) is Mode.INLINE else Timing.DEFERRED)
