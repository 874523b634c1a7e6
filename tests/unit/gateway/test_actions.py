"""What the three actions carry."""

from typing import Any

import pytest

from etude.gateway.actions import Action, ActionPayloadError, read_payload, to_json


@pytest.mark.parametrize(
    ("action", "payload"),
    [
        (Action.START_APP_TASK, {"app": "english", "task": "shadowing"}),
        (Action.START_APP_TASK, {"app": "e", "task": "t", "loop": 3, "name": "01 歌.mp3"}),
        (Action.SET_ALARM, {"time": "07:30"}),
        (Action.SET_ALARM, {"time": "2026-09-01T07:30:00+08:00", "app": "e", "task": "t"}),
        (Action.ENSURE_APP_DIRS, {"app_id": "english", "tasks": ["a", "b"]}),
    ],
)
def test_a_payload_goes_on_as_it_was_given(action: Action, payload: dict[str, Any]) -> None:
    """Nothing is added, nothing renamed: the board reads these names."""
    assert msgspec_equal(to_json(read_payload(action, payload)), payload)


def msgspec_equal(made: dict[str, Any], given: dict[str, Any]) -> bool:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in made.items()} == given


@pytest.mark.parametrize(
    ("action", "payload", "named"),
    [
        (Action.START_APP_TASK, {"app": "english"}, "task"),
        (Action.START_APP_TASK, {"app": "e", "task": "x" * 32}, "task"),
        (Action.START_APP_TASK, {"app": "../e", "task": "t"}, "app"),
        (Action.START_APP_TASK, {"app": "e", "task": "t", "loop": 0}, "loop"),
        (Action.START_APP_TASK, {"app": "e", "task": "t", "name": "a\nb"}, "name"),
        (Action.SET_ALARM, {"time": ""}, "time"),
        (Action.ENSURE_APP_DIRS, {"app_id": "e", "tasks": []}, "tasks"),
        (Action.ENSURE_APP_DIRS, {"app_id": "e", "tasks": ["a/b"]}, "tasks"),
        (Action.ENSURE_APP_DIRS, {"app_id": "e", "tasks": ["a"], "passed": True}, "passed"),
        (Action.ENSURE_APP_DIRS, [], "object"),
    ],
)
def test_what_an_action_does_not_carry_is_refused_by_name(
    action: Action, payload: object, named: str
) -> None:
    """The reason names the member."""
    with pytest.raises(ActionPayloadError) as refused:
        read_payload(action, payload)
    assert named in str(refused.value.params["reason"])
