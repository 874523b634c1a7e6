"""Frameworks: what is refused, by which path, and how old records are read."""

from typing import Any

import msgspec
import pytest

from etude.authoring.errors import FrameworkInvalidError
from etude.authoring.framework import framework_from, read_framework
from etude.authoring.outline.planning import plan
from etude.authoring.reading import read_material
from etude.authoring.samples import SAMPLES, sample


def plain(name: str = SAMPLES[0]) -> dict[str, Any]:
    framework = plan(read_material([sample(name)]))
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(framework))
    return value


@pytest.mark.parametrize("name", SAMPLES)
def test_a_planned_framework_keeps_all_rules(name: str) -> None:
    """What the outline author plans is accepted as if a person had sent it."""
    framework = framework_from(plain(name))
    assert 3 <= len(framework.course_goals) <= 8
    assert not framework.compat


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("courseTitle", lambda one: one.update(courseTitle="")),
        ("courseGoals", lambda one: one.update(courseGoals=["a", "b"])),
        ("courseGoals[2]", lambda one: one.update(courseGoals=["a", "b", "Ａ."])),  # noqa: RUF001 - a wide letter
        ("modules", lambda one: one.update(modules=one["modules"][:3])),
        (
            "modules[1].title",
            lambda one: one["modules"][1].update(title=one["modules"][0]["title"]),
        ),
        ("modules[0].estimatedMinutes", lambda one: one["modules"][0].update(estimatedMinutes=4)),
        ("modules[0].generationPrompt", lambda one: one["modules"][0].update(generationPrompt="x")),
        (
            "modules[2].incomingKnowledge",
            lambda one: one["modules"][2].update(incomingKnowledge=[]),
        ),
        (
            "modules[1].prerequisites[0].moduleIndex",
            lambda one: one["modules"][1].update(prerequisites=[{"moduleIndex": 1, "text": "x"}]),
        ),
        (
            "modules[0].excludedTopics[0]",
            lambda one: one["modules"][0].update(
                excludedTopics=[one["modules"][0]["learningObjectives"][0]]
            ),
        ),
        ("modules[3].surprise", lambda one: one["modules"][3].update(surprise=1)),
    ],
)
def test_each_mistake_is_named_by_its_path(path: str, change: Any) -> None:
    """A mistake of a framework is refused with the path where it is."""
    value = plain()
    change(value)
    with pytest.raises(FrameworkInvalidError) as refused:
        framework_from(value)
    assert path in [part.params["path"] for part in refused.value.parts]


def test_every_mistake_is_told_at_once() -> None:
    """Two mistakes are two parts."""
    value = plain()
    value["courseTitle"] = ""
    value["modules"][0]["estimatedMinutes"] = 999
    with pytest.raises(FrameworkInvalidError) as refused:
        framework_from(value)
    assert len(refused.value.parts) == 2


def test_terms_may_be_plain_strings() -> None:
    """Terms and prerequisites may be plain strings, as models write them."""
    value = plain()
    value["continuityContract"]["terminology"] = ["moon"]
    value["modules"][1]["prerequisites"] = ["can read"]
    framework = framework_from(value)
    assert framework.continuity_contract.terminology[0].term == "moon"


def test_an_old_record_is_filled_in_and_marked() -> None:
    """A record of old is readable, and marked so that no gate takes it for a new one."""
    old = {"courseTitle": "Old", "modules": [{"title": f"M{n}"} for n in range(4)]}
    framework = read_framework(msgspec.json.encode(old))
    assert framework.compat
    assert [one.title for one in framework.modules] == ["M0", "M1", "M2", "M3"]
    assert all(len(one.generation_prompt) >= 80 for one in framework.modules)
