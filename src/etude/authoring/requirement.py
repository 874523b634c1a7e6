"""What the author of one module is told: the course, the module, what is really there before it.

Always in one order: course, module, what is made so far, what was asked for. Digests and the
request are data, fenced in: they come from earlier answers and from people, and may look like
instructions. Equal input gives equal text.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from etude.authoring.framework import CourseFramework, ModuleSpec
from etude.classroom.digest import OutputDigest

MOST: Final = 48_000
_CUT: Final = "\n[… cut]"
_FENCE: Final = "~~~~"


def build_module_requirement(
    framework: CourseFramework, index: int, earlier: Sequence[OutputDigest], request: str
) -> str:
    """Return the requirement of module `index`.

    Args:
        framework: of the course.
        index: from 0.
        earlier: digests of all modules before it, in order, as they are on disk.
        request: what the course was asked for, in words.
    """
    head = "\n\n".join((*_course(framework), *_module(framework.modules[index])))
    for detail in range(len(earlier) * 2 + 1):
        told = "\n".join(_digest(one, _level(at, detail)) for at, one in enumerate(earlier))
        whole = f"{head}\n\n# Made so far\n{_FENCE}\n{told}\n{_FENCE}\n\n# Asked for\n"
        if len(whole) + len(request) <= MOST:
            break
    room = max(0, MOST - len(whole) - len(_CUT) - 2 * len(_FENCE) - 2)
    asked = request if len(request) <= room else request[:room] + _CUT
    return f"{whole}{_FENCE}\n{asked}\n{_FENCE}"


def _level(at: int, detail: int) -> int:
    """Return how much of the digest at a place is told: the oldest ones shrink first."""
    return min(2, max(0, detail - 2 * at))


def _course(framework: CourseFramework) -> Iterator[str]:
    contract = framework.continuity_contract
    yield f"# Course\n{framework.course_title}\n{framework.summary}"
    yield f"# Learners\n{framework.target_audience}"
    yield "# Goals\n" + _lines(framework.course_goals)
    yield f"# Language\n{framework.language_directive}"
    terms = [f"{one.term}: {one.definition}".rstrip(": ") for one in contract.terminology]
    yield "# Terms\n" + _lines(terms)
    yield f"# Style\n{contract.teaching_style}"
    yield f"# Progression\n{contract.difficulty_progression}"
    yield f"# Assessment\n{contract.assessment_strategy}"


def _module(module: ModuleSpec) -> Iterator[str]:
    yield f"# Module\n{module.title}\n{module.generation_prompt}"
    yield "# Objectives\n" + _lines(module.learning_objectives)
    yield "# Needs\n" + _lines([one.text for one in module.prerequisites])
    yield "# Known before\n" + _lines(module.incoming_knowledge)
    yield "# Known after\n" + _lines(module.outgoing_knowledge)
    yield "# Left to others\n" + _lines(module.excluded_topics)


def _digest(digest: OutputDigest, level: int) -> str:
    if level > 0:
        scenes = tuple(msgspec.structs.replace(one, key_content="") for one in digest.scenes)
        digest = msgspec.structs.replace(digest, scenes=scenes if level == 1 else ())
    plain = {
        "title": digest.stage.title,
        "coveredConcepts": digest.covered_concepts,
        "semanticHash": digest.semantic_hash,
        "scenes": [
            {"type": one.type, "title": one.title, "says": one.key_content} for one in digest.scenes
        ],
    }
    return msgspec.json.encode(plain).decode().replace(_FENCE, "")


def _lines(parts: Sequence[str]) -> str:
    return "\n".join(f"- {part}" for part in parts) or "-"
