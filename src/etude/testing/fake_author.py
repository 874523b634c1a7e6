"""A model that writes courses, as well as a good one would: for tests of the author that asks it.

`CourseModel` answers each task of the prompts by its name (`Task: scene:quiz`) with something that
keeps to its contract; `instead` says what it plays for a task first.
"""

import re
import threading
from collections import defaultdict, deque
from typing import Any, Final

import msgspec

from etude.testing.fake_llm import Asked, FakeModel, Part, Says

_TASK: Final = re.compile(r"^Task: (\S+)", re.MULTILINE)
_SCENE: Final = re.compile(r"^This scene \(number (\d+)\): (.+)$", re.MULTILINE)
_ELEMENT: Final = re.compile(r"^- (\S+): ", re.MULTILINE)
MODULES: Final = 4


class CourseModel(FakeModel):
    """A model that writes courses.

    Attributes:
        instead: what is played for a task instead of a good answer, oldest first.
        tasks: the task of each request, in order.
    """

    def __init__(self, *, modules: int = MODULES) -> None:
        """Plan courses of so many modules."""
        super().__init__(usual=self._played)
        self.modules = modules
        self.instead: defaultdict[str, deque[Part]] = defaultdict(deque)
        self.tasks: list[str] = []
        self._turn = threading.Lock()

    def play(self, task: str, *parts: Part) -> None:
        """Play parts for the next requests of a task."""
        self.instead[task].extend(parts)

    def count(self, task: str) -> int:
        """Return how often a task was asked for."""
        return self.tasks.count(task)

    def _played(self, asked: Asked) -> Part:
        task = task_of(asked)
        with self._turn:
            self.tasks.append(task)
            if self.instead[task]:
                return self.instead[task].popleft()
        return Says(good_answer(task, asked, self.modules))


def task_of(asked: Asked) -> str:
    """Return the task that a request names; it stands in the first question of a person."""
    first = next(one for one in asked.body["messages"] if one["role"] == "user")
    found = _TASK.search(str(first["content"]))
    return found[1] if found else ""


def good_answer(task: str, asked: Asked, modules: int = MODULES) -> str:
    """Return an answer that keeps to the contract of a task."""
    said = str(asked.body["messages"][1]["content"])
    if task == "course-framework":
        return _json(framework(modules))
    if task == "outlines":
        return f"Here is the outline:\n```json\n{_json(outlines('practice:' in said))}\n```"
    if task == "actions":
        return _json(_actions(said))
    scene = _SCENE.search(said)
    number, title = (scene[1], scene[2]) if scene else ("1", "A scene")
    return _SCENES[task](number, title)


def framework(modules: int = MODULES) -> dict[str, Any]:
    """Return a framework as a model writes it: with a key too many, and without ids."""
    return {
        "courseTitle": "How water travels",
        "summary": "Where water comes from, where it goes, and how we use it with care.",
        "languageDirective": "Teach in English; keep 'vapour' and 'groundwater' as fixed terms.",
        "targetAudience": "Children of nine to eleven years",
        "courseGoals": [f"Explain step {at} of the way of water" for at in range(1, 4)],
        "continuityContract": {
            "terminology": ["vapour", {"term": "groundwater", "definition": "Water below ground"}],
            "teachingStyle": "Show, let them try, then ask.",
            "difficultyProgression": "From seeing to explaining.",
            "assessmentStrategy": "Short checks, then a project.",
        },
        "modules": [_module(at) for at in range(modules)],
        "confidence": 0.9,
    }


def _module(at: int) -> dict[str, Any]:
    topic = ("The sea", "The cloud", "The river", "The ground", "The tap")[at % 5] + f" {at + 1}"
    return {
        "index": at,
        "title": topic,
        "description": f"What water does in part {at + 1} of its way.",
        "generationPrompt": f"Teach part {at + 1}, {topic}: begin with a picture from daily life, "
        "then let learners change something and see what happens, then ask.",
        "learningObjectives": [f"Say what happens in part {at + 1}"],
        "prerequisites": [{"moduleIndex": at - 1, "text": "The part before"}] if at else [],
        "incomingKnowledge": [f"Part {at} of the way"] if at else [],
        "outgoingKnowledge": [f"Part {at + 1} of the way"],
        "excludedTopics": ["Chemistry of water"],
        "estimatedMinutes": 35,
    }


def outlines(practice: bool) -> dict[str, Any]:  # noqa: FBT001 - told by the prompt
    """Return the outline of a lesson."""
    scenes = [
        ("slide", "What we see"),
        ("slide", "How it works"),
        ("interactive", "Try it yourself"),
        *([("practice", "Say it aloud")] if practice else []),
        ("quiz", "Check"),
        ("pbl", "Build a small cycle"),
        ("slide", "What we learnt"),
    ]
    return {
        "title": "The way of a drop",
        "languageDirective": "Teach in English.",
        "scenes": [_outlined(kind, title) for kind, title in scenes],
    }


def _outlined(kind: str, title: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": kind,
        "title": title,
        "description": f"{title}: what learners see and do here.",
        "keyPoints": ["Warm water rises", "Cold air lets it fall"],
    }
    if kind == "quiz":
        made["quiz"] = {"count": 3, "types": ["single", "multiple", "short_answer"]}
    if kind == "interactive":
        made["activity"] = "They move a slider and see how much vapour rises."
    return made


def _slide(number: str, title: str) -> str:
    blocks: list[dict[str, Any]] = [
        {"kind": "bullets", "items": ["The sun warms the sea", "Vapour rises into cold air"]},
        {"kind": "definition", "term": "Vapour", "meaning": "Water that has become a gas"},
    ]
    if number == "1":
        blocks.append(
            {
                "kind": "picture",
                "idea": "The sea under the sun, with clouds",
                "caption": "From the sea to the cloud",
                "shape": "cycle",
                "labels": ["Sea", "Vapour", "Cloud", "Rain"],
            }
        )
    else:
        blocks.append({"kind": "table", "header": ["Air", "Water"], "rows": [["warm", "rises"]]})
    return _json({"title": title, "blocks": blocks, "notes": "Ask what they have seen today."})


def _quiz(_number: str, _title: str) -> str:
    return _json(
        {
            "questions": [
                {
                    "type": "single",
                    "question": "What makes the water of the sea rise?",
                    "options": ["The warmth of the sun", "The wind alone", "The moon"],
                    "answer": "The warmth of the sun",
                    "analysis": "Warm water becomes vapour.",
                },
                {
                    "type": "multiple",
                    "question": "Where does water wait?",
                    "options": ["A. In clouds", "B. In the ground", "C. In stones of the moon"],
                    "answer": ["A. In clouds", "B. In the ground"],
                    "analysis": "Clouds and the ground hold water.",
                },
                {
                    "type": "short_answer",
                    "question": "Why does it rain?",
                    "commentPrompt": "Names cold air, and drops that become heavy.",
                    "analysis": "Drops become heavy and fall.",
                },
            ]
        }
    )


def _page(number: str, title: str) -> str:
    return f"""Of course!
```html
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1><p>Move the slider: the warmer the sea, the more vapour rises.</p>
<input id="heat" type="range" min="0" max="40" value="10" aria-label="Warmth of the sea">
<output id="said">10 degrees, a little vapour</output><button id="again">Begin anew</button>
<script>
const heat = document.getElementById("heat"), said = document.getElementById("said");
function show() {{ said.textContent = heat.value + " degrees in scene {number}"; }}
heat.addEventListener("input", show);
document.getElementById("again").addEventListener("click", () => {{ heat.value = 10; show(); }});
</script></body></html>
```"""


def _project(_number: str, title: str) -> str:
    milestone = {
        "title": "Plan it",
        "briefing": "Choose a jar and say what you expect to see in it.",
        "completionCriteria": "A sketch with three names on it",
        "debrief": "What surprised you?",
        "coreConcept": "Water goes round",
        "tasks": [{"title": "Draw the jar", "hints": ["Begin with the water"]}],
    }
    return _json(
        {
            "title": title,
            "description": "Build a water cycle in a jar and explain it to somebody.",
            "learningObjective": "Explain the way of water with your own model",
            "gains": ["A model of your own"],
            "coach": "Ask what they see; do not tell.",
            "milestones": [milestone, milestone | {"title": "Build it"}],
        }
    )


def _sentences(_number: str, _title: str) -> str:
    return _json({"sentences": ["The sea is warm today.", "The rain falls on the hill."]})


def _actions(said: str) -> list[dict[str, Any]]:
    elements = _ELEMENT.findall(said.partition("\nElements:\n")[2].partition("\nAgents:")[0])
    spots = [{"type": "spotlight", "elementId": one} for one in elements[:1]]
    talk = {"type": "discussion", "topic": "Where did you see water today?", "agentId": "nobody"}
    return [*spots, {"type": "text", "text": "Look at what the water does here."}, talk]


_SCENES: Final = {
    "scene:slide": _slide,
    "scene:quiz": _quiz,
    "scene:interactive": _page,
    "scene:pbl": _project,
    "scene:practice": _sentences,
}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
