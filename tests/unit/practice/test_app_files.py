import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.documents import DocumentInvalidError
from etude.practice.apps import installed_apps, load_apps, shipped_apps
from etude.practice.errors import AppFileUnreadableError, TaskUnknownError
from etude.practice.records import Mode
from etude.practice.tasks import Activity, Task, Timing

TASK = """\
app_id: reading
tasks:
  - task_id: aloud
    mode: SHADOWING
"""


def load(folder: Path, text: str, name: str = "reading.yaml") -> Task:
    (folder / name).write_text(text, "utf-8")
    return next(iter(load_apps([folder])))


def older(**task: Any) -> str:
    """An app as the runtime's older `apps.json` has it."""
    inner = {"task_id": "shadowing", "interaction_mode": "SHADOWING", **task}
    return json.dumps({"version": 3, "apps": [{"app_id": "english", "tasks": [inner]}]}, indent=1)


def test_every_kind_of_activity_ships() -> None:
    """The shipped apps load, and there is a sample of every activity."""
    tasks = list(shipped_apps())
    assert {task.activity for task in tasks} == set(Activity)
    assert {task.mode for task in tasks} == set(Mode)


def test_what_ships_is_measured_by_every_method_or_in_the_stream() -> None:
    """A shipped task that is read or told names no method, so that all are asked."""
    said = {task.mode: task.assessment.told() for task in shipped_apps()}
    assert said[Mode.INLINE] == {"enabled": True, "methods": ["exact_match_v1"]}
    deferred = [task for task in shipped_apps() if task.mode is Mode.SHADOWING]
    assert len(deferred) >= 4
    for task in deferred:
        assert task.assessment.told() == {"enabled": True, "methods": []}


def test_no_two_shipped_tasks_answer_to_one_phrase() -> None:
    """A phrase starts one task, so which file was read first never matters."""
    phrases = [phrase for task in shipped_apps() for phrase in task.entry_phrases]
    assert len(phrases) == len(set(phrases))


def test_the_device_specs_name_of_the_mode_is_understood(tmp_path: Path) -> None:
    """`FOLLOW_READ` on input is `SHADOWING`."""
    assert load(tmp_path, TASK.replace("SHADOWING", "FOLLOW_READ")).mode is Mode.SHADOWING


def test_a_task_that_says_little_has_the_usual_values(tmp_path: Path) -> None:
    """Ratio 1.2, deferred, not assessed, English, follow-read."""
    task = load(tmp_path, TASK)
    assert (task.listen_ratio, task.language, task.activity) == (1.2, "en", Activity.FOLLOW_READ)
    assert (task.assessment.enabled, task.assessment.timing) == (False, Timing.DEFERRED)


@pytest.mark.parametrize(("given_", "kept"), [("0.5", 1.2), ("1.35", 1.35), ("9", 1.5)])
def test_the_ratio_is_clamped(tmp_path: Path, given_: str, kept: float) -> None:
    """1.2 to 1.5, whatever the file says."""
    assert load(tmp_path, f"{TASK}    listen_ratio: {given_}\n").listen_ratio == kept


@pytest.mark.parametrize("rubric", [{"id": "retelling", "version": "v1.0"}, {"id": "retelling"}])
def test_a_task_names_the_rubric_of_its_sessions(tmp_path: Path, rubric: dict[str, str]) -> None:
    """With a version or without one, in both kinds of file; else there is none."""
    assert load(tmp_path, TASK).rubric is None
    assert load(tmp_path, f"{TASK}    rubric: {json.dumps(rubric)}\n").rubric == rubric
    (tmp_path / "reading.yaml").unlink()
    assert load(tmp_path, older(rubric={**rubric, "author": "me"}), "apps.json").rubric == rubric


def mistakes(folder: Path, text: str, name: str = "reading.yaml") -> list[tuple[str, int]]:
    """Code and line of everything that is wrong with a file."""
    with pytest.raises(DocumentInvalidError) as raised:
        load(folder, text, name)
    assert all(str(part.params["file"]).endswith(name) for part in raised.value.parts)
    return [(part.code, int(part.params["line"])) for part in raised.value.parts]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("    threshold: 0.8", "APP_VERDICT_REFUSED"),
        ("    max_retry: 2", "APP_VERDICT_REFUSED"),
        ("    Passed: true", "APP_VERDICT_REFUSED"),
        ("    assessment: {level: good}", "APP_VERDICT_REFUSED"),
        ("    steps: [{judge: {if: correct}}]", "APP_VERDICT_REFUSED"),
        ("    steps: [play, judge]", "APP_VERDICT_REFUSED"),
        ("    steps: [{type: JUDGE}]", "APP_VERDICT_REFUSED"),
        ("    assessment: {timing: inline}", "APP_TIMING_REFUSED"),
        ("    speed: 2", "DOCUMENT_UNKNOWN_KEY"),
        ("    assessment: {scores: 1}", "DOCUMENT_UNKNOWN_KEY"),
        ("    mode: SHADOWING", "DOCUMENT_SYNTAX"),
        ("    repeat: 0", "DOCUMENT_OUT_OF_BOUNDS"),
        ("    repeat: 1.5", "DOCUMENT_OUT_OF_BOUNDS"),
        ("    listen_ratio: .nan", "DOCUMENT_NO_JSON"),
        ("    listen_ratio: wide", "DOCUMENT_NOT_A"),
        ("    sentences: [[a]]", "DOCUMENT_NOT_A"),
        ("    language: fr", "DOCUMENT_NOT_ONE_OF"),
        ("    assessment: [a]", "DOCUMENT_NOT_A"),
        ("    activity: idiom_chain", "DOCUMENT_NOT_ONE_OF"),
        ("    window_ms: 100", "DOCUMENT_OUT_OF_BOUNDS"),
        ("    rubric: retelling", "DOCUMENT_NOT_A"),
        ("    rubric: {version: v1.0}", "DOCUMENT_MISSING"),
        ("    rubric: {id: retelling, version: 1.0}", "DOCUMENT_NOT_A"),
        ("    rubric: {id: retelling, digest: a}", "DOCUMENT_UNKNOWN_KEY"),
        ("  - {task_id: aloud, mode: CHAT}", "DOCUMENT_TWICE"),
    ],
)
def test_a_refusal_names_the_line(tmp_path: Path, line: str, code: str) -> None:
    """What is wrong is named with code, file and line, and nothing else is."""
    found = mistakes(tmp_path, f"{TASK}{line}\n")
    assert (code, 5) in found
    assert {where for _, where in found} <= {5, 6}


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """A verdict, an unknown key and a bad value: three mistakes, in the order of the lines."""
    text = f"{TASK}    threshold: 1\n    speed: 2\n    repeat: 0\n"
    assert mistakes(tmp_path, text) == [
        ("APP_VERDICT_REFUSED", 5),
        ("DOCUMENT_UNKNOWN_KEY", 6),
        ("DOCUMENT_OUT_OF_BOUNDS", 7),
    ]


@pytest.mark.parametrize("name", ["a b", "", "x" * 32, "../x", "café", "x\n"])
def test_an_id_that_cannot_name_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Ids have 1 to 31 characters of [A-Za-z0-9_-]."""
    mistakes(tmp_path, TASK.replace("aloud", json.dumps(name, ensure_ascii=False)))


@pytest.mark.parametrize("text", ["app_id: [", "a: b: c", "", "app_id: reading\n\t- x", "&a *b"])
def test_what_is_no_yaml_is_refused(tmp_path: Path, text: str) -> None:
    """Malformed, empty, or no mapping: mistakes, no traceback."""
    assert mistakes(tmp_path, text)


def test_a_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    """What is not UTF-8 is `APP_FILE_UNREADABLE`."""
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AppFileUnreadableError):
        load_apps([tmp_path])


def test_an_app_is_declared_once(tmp_path: Path) -> None:
    """A second file with the same app is refused, and names itself."""
    (tmp_path / "a.yaml").write_text(TASK)
    assert mistakes(tmp_path, TASK, "b.yaml") == [("DOCUMENT_TWICE", 1)]


def test_an_app_needs_tasks(tmp_path: Path) -> None:
    """None at all, or an empty list."""
    assert mistakes(tmp_path, "app_id: reading\n") == [("DOCUMENT_MISSING", 1)]
    assert mistakes(tmp_path, "app_id: reading\ntasks: []\n") == [("DOCUMENT_EMPTY", 2)]


def test_the_older_json_is_read_with_what_it_has_more(tmp_path: Path) -> None:
    """`apps.json` loads: keys that are unknown here are passed over, `defer: true` is deferred."""
    text = older(
        enter_prompt="/english/shadowing/lessons",
        allowlist=["self_mp3_play", "self_sd_ensure_app"],
        sentences=["Hello", "\U0001f600"],
        listen_ratio=1.4,
        assessment={"enabled": True, "methods": ["text_similarity_v0"], "defer": True, "x": 1},
        skills=["play_audio"],
    )
    task = load(tmp_path, text, "apps.json")
    assert (task.mode, task.listen_ratio) == (Mode.SHADOWING, 1.4)
    assert task.sentences == ("Hello", "\U0001f600")
    assert task.allows("self.mp3.play")
    assert not task.allows("self.reboot")
    assert (task.assessment.enabled, task.assessment.timing) == (True, Timing.DEFERRED)


def test_the_older_json_may_name_apps_and_tasks_by_key(tmp_path: Path) -> None:
    """`{"english": {"tasks": {"shadowing": {…}}}}` is the same."""
    text = '{"english": {"tasks": {"shadowing": {"mode": "SHADOWING",\n\t"extra": [1]}}}}'
    task = load(tmp_path, text, "apps.json")
    assert (task.app_id, task.task_id) == ("english", "shadowing")


def test_a_verdict_in_the_older_json_is_refused_too(tmp_path: Path) -> None:
    """`threshold` in `apps.json` names its line."""
    text = older(assessment={"threshold": 0.82})
    ((code, line),) = mistakes(tmp_path, text, "apps.json")
    assert code == "APP_VERDICT_REFUSED"
    assert "threshold" in text.splitlines()[line - 1]


def test_a_mistake_in_the_older_json_keeps_its_line(tmp_path: Path) -> None:
    """What has a meaning must be right there, too, under the names that it has there."""
    text = older(interaction_mode="DANCING", allowlist=7)
    found = mistakes(tmp_path, text, "apps.json")
    lines = [text.splitlines()[line - 1] for _, line in found]
    assert ["DANCING" in lines[0], "allowlist" in lines[1]] == [True, True]


def test_broken_json_is_refused_with_its_line(tmp_path: Path) -> None:
    """YAML that is no JSON is no `apps.json`."""
    found = mistakes(tmp_path, '{"apps": [\n  oops]}', "apps.json")
    assert found == [("DOCUMENT_SYNTAX", 2)]


def test_words_to_be_read_may_be_any(tmp_path: Path) -> None:
    """A sentence "judge", or a transcript called `level`, is no verdict."""
    text = f"{TASK}    sentences: [judge]\n    transcripts: {{level: passed}}\n"
    task = load(tmp_path, text)
    assert (task.sentences, task.transcripts) == (("judge",), {"level": "passed"})


def test_a_task_that_is_not_declared_is_named() -> None:
    """Asking for it raises `TASK_UNKNOWN`."""
    with pytest.raises(TaskUnknownError):
        shipped_apps().task("english_learning", "dancing")


@pytest.mark.parametrize(
    ("name", "arguments", "found", "left"),
    [
        ("shadowing", ("unit02",), "shadowing", ("unit02",)),
        ("english_learning", ("shadowing", "unit02"), "shadowing", ("unit02",)),
        ("开始跟读", (), "follow_read", ()),
    ],
)
def test_a_device_names_a_task(
    name: str, arguments: tuple[str, ...], found: str, left: tuple[str, ...]
) -> None:
    """`[app_task]name|…` names a task, an app and its task, or an entry phrase."""
    named = shipped_apps().named(name, arguments)
    assert named is not None
    assert (named[0].task_id, named[1]) == (found, left)


def test_a_name_that_nobody_has_is_nothing() -> None:
    """`[app_task]` with an unknown name finds no task."""
    assert shipped_apps().named("dancing", ()) is None


@given(st.text(max_size=80))
def test_any_text_is_an_app_file_or_a_typed_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Whatever a file holds, reading it ends in apps or in an error with a code."""
    for name in ("x.yaml", "x.json"):
        folder = tmp_path_factory.mktemp("apps")
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(DocumentInvalidError, AppFileUnreadableError):
            load_apps([folder])


def test_an_operators_apps_add_to_those_that_ship(tmp_path: Path) -> None:
    """One of a shipped id takes its place whole; a phrase of two apps means the operator's."""
    assert installed_apps(tmp_path / "none") == shipped_apps()
    mine = "app_id: {0}\ntasks:\n- {{task_id: mine, mode: SHADOWING, entry_phrases: [{1}]}}\n"
    (tmp_path / "a.yaml").write_text(mine.format("english_learning", "go"))
    (tmp_path / "b.yaml").write_text(mine.format("zoo", "play a story"))
    found = installed_apps(tmp_path)
    assert set(found.by_id) == {*shipped_apps().by_id, "zoo"}
    assert list(found.by_id["english_learning"].tasks) == ["mine"]
    theirs = next(task for task in shipped_apps() if task.app_id == "story_time")
    (tmp_path / "b.yaml").write_text(mine.format("zoo", f"'{theirs.entry_phrases[0]}'"))
    meant = installed_apps(tmp_path).entered(theirs.entry_phrases[0])
    assert meant is not None
    assert meant.app_id == "zoo"
