"""App files: YAML of our own (strict) and the runtime's older `apps.json` (lenient to extra keys).

Both are read as YAML nodes, since JSON is YAML but for tabs: so every refusal names the line.
What asks for a verdict is refused in both (`rulings.md` 19).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from etude.practice.errors import (
    AppFileMalformedError,
    AppFileUnreadableError,
    AppKeyTwiceError,
    AppTimingError,
    AppVerdictError,
)
from etude.practice.marked import Fields
from etude.practice.records import LISTEN_RATIO_MAX, LISTEN_RATIO_MIN, LONGEST_CLIP_MS, Mode
from etude.practice.tasks import (
    ACTIVITIES,
    CARD_TOOLS,
    Activity,
    App,
    Assessment,
    Task,
    Timing,
)

APP_KEYS: Final = ("app_id", "title", "language", "tasks")
TASK_KEYS: Final = (
    *("task_id", "title", "mode", "activity", "language", "enter_prompt"),
    *("entry_phrases", "exit_phrases", "tools", "listen_ratio", "assessment"),
    *("transcripts", "sentences", "repeat", "window_ms", "rounds"),
)
ASSESSMENT_KEYS: Final = ("enabled", "methods", "timing", "defer")
VERDICTS: Final = frozenset(
    {"threshold", "max_retry", "retry_count", "passed", "level", "grade", "good", "bad"}
    | {"score", "verdict", "judge"}
)
"""Keys that ask for a verdict."""

_TEXTS: Final = frozenset({"transcripts", "sentences"})
_STEPS: Final = frozenset({"steps", "step", "type", "action", "skill"})
_MODES: Final = {"FOLLOW_READ": Mode.SHADOWING} | {mode.value: mode for mode in Mode}
_SAME: Final = {"allowlist": "tools", "interaction_mode": "mode", "name": "title"}
"""Keys of `apps.json` that are called otherwise here."""
_CHECK_IN_MS: Final = 60_000
_ANSWER_MS: Final = 8_000


def read_app_file(file: Path) -> Iterator[tuple[int, App]]:
    """Read one file: each app with the line where it begins.

    Raises:
        AppFileError: the file cannot be used; its subclass, `file`, `line` and `key` say why.
    """
    strict = file.suffix != ".json"
    root = _compose(file, strict=strict)
    _refuse_verdicts(str(file), root, in_step=False)
    top = Fields(str(file), root, {} if strict else _SAME)
    if strict or "app_id" in top:
        yield top.line, _app(top, strict=strict)
        return
    for one in top.entries("apps", "app_id") if "apps" in top else top.all_entries("app_id"):
        yield one.line, _app(one, strict=False)


def _compose(file: Path, *, strict: bool) -> Node:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "UTF-8"
        raise AppFileUnreadableError(file=str(file), reason=reason) from error
    try:
        if not strict:
            json.loads(text)
        node: Node | None = YAML(typ="safe", pure=True).compose(text.replace("\t", " "))
    except json.JSONDecodeError as error:
        raise AppFileMalformedError(file=str(file), line=error.lineno, reason=error.msg) from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        reason = error.problem or error.context or ""
        raise AppFileMalformedError(file=str(file), line=line, reason=reason) from error
    except (YAMLError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise AppFileMalformedError(file=str(file), line=1, reason=reason) from error
    if node is None:
        raise AppFileMalformedError(file=str(file), line=1, reason="empty")
    return node


def _refuse_verdicts(file: str, node: Node, *, in_step: bool) -> None:
    if isinstance(node, SequenceNode):
        for item in node.value:
            _refuse_verdicts(file, item, in_step=in_step)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            name = str(key.value).casefold()
            if name in VERDICTS:
                raise AppVerdictError(file=file, line=key.start_mark.line + 1, key=str(key.value))
            if name not in _TEXTS:
                _refuse_verdicts(file, value, in_step=in_step or name in _STEPS)
    elif in_step and isinstance(node, ScalarNode) and node.value.casefold() == "judge":
        raise AppVerdictError(file=file, line=node.start_mark.line + 1, key=node.value)


def _app(fields: Fields, *, strict: bool) -> App:
    if strict:
        fields.only(APP_KEYS)
    app_id = fields.identifier("app_id")
    language = fields.choice("language", {"en": "en", "zh-CN": "zh-CN"}, "en")
    tasks: dict[str, Task] = {}
    for one in fields.entries("tasks", "task_id"):
        task = _task(app_id, language, one, strict=strict)
        if task.task_id in tasks:
            raise AppKeyTwiceError(file=fields.file, line=one.line, key=task.task_id)
        tasks[task.task_id] = task
    return App(app_id=app_id, title=fields.text("title", app_id), tasks=tasks)


def _task(app_id: str, language: str, fields: Fields, *, strict: bool) -> Task:
    if strict:
        fields.only(TASK_KEYS)
    mode = fields.choice("mode", _MODES)
    possible = {activity.value: activity for activity in ACTIVITIES[mode]}
    activity = fields.choice("activity", possible, ACTIVITIES[mode][0])
    return Task(
        app_id=app_id,
        task_id=fields.identifier("task_id"),
        mode=mode,
        activity=activity,
        title=fields.text("title", ""),
        language=fields.choice("language", {"en": "en", "zh-CN": "zh-CN"}, language),
        enter_prompt=fields.text("enter_prompt", ""),
        entry_phrases=fields.texts("entry_phrases"),
        exit_phrases=fields.texts("exit_phrases"),
        tools=fields.texts("tools") if "tools" in fields else CARD_TOOLS,
        listen_ratio=_ratio(fields),
        assessment=_assessment(mode, fields, strict=strict),
        transcripts=fields.text_map("transcripts"),
        sentences=fields.texts("sentences"),
        repeat=fields.whole("repeat", 1, 1, 100),
        window_ms=_window_ms(activity, fields),
        rounds=fields.whole("rounds", 5, 1, 50),
    )


def _ratio(fields: Fields) -> float:
    given = fields.number("listen_ratio", LISTEN_RATIO_MIN)
    return min(max(given, LISTEN_RATIO_MIN), LISTEN_RATIO_MAX)


def _window_ms(activity: Activity, fields: Fields) -> int | None:
    usual = {Activity.CHECK_IN: _CHECK_IN_MS}.get(activity)
    if activity in ACTIVITIES[Mode.INLINE]:
        usual = _ANSWER_MS
    if "window_ms" not in fields:
        return usual
    return fields.whole("window_ms", 0, 800, LONGEST_CLIP_MS)


def _assessment(mode: Mode, fields: Fields, *, strict: bool) -> Assessment:
    usual = Timing.INLINE if mode is Mode.INLINE else Timing.DEFERRED
    inner = fields.inner("assessment")
    if inner is None:
        return Assessment(timing=usual)
    if strict:
        inner.only(ASSESSMENT_KEYS)
    if inner.flag("defer", default=False):
        usual = Timing.DEFERRED
    timing = inner.choice("timing", {one.value: one for one in Timing}, usual)
    if (timing is Timing.INLINE) != (mode is Mode.INLINE):
        raise AppTimingError(
            file=inner.file, line=inner.line_of("timing"), mode=mode.value, timing=timing.value
        )
    return Assessment(
        enabled=inner.flag("enabled", default=False), methods=inner.texts("methods"), timing=timing
    )
