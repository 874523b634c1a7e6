"""From a model's answer to the framework of a course."""

from typing import Any, Final

import msgspec

from etude.authoring.errors import FrameworkInvalidError
from etude.authoring.framework import (
    Contract,
    CourseFramework,
    ModuleSpec,
    Prerequisite,
    TermEntry,
    checked,
    framework_from,
)
from etude.authoring.material import Language
from etude.authoring.model.answers import json_of, mistake, refused
from etude.authoring.model.script_gate import script_mistakes, texts_in

_NOT_ITS_OWN: Final = frozenset({"compat", "moduleId"})


def read_framework_answer(text: str, language: Language) -> CourseFramework:
    """Return the framework in an answer; keys that nobody reads go, ids of modules are ours.

    Raises:
        ModelAnswerRefusedError: its parts are all the mistakes, each with its path.
    """
    value = json_of(text)
    if not isinstance(value, dict):
        raise refused([mistake("/", "not_a", "mapping")])
    try:
        made = checked(framework_from(_known(value)))
    except FrameworkInvalidError as error:
        raise refused(error.parts) from None
    found = script_mistakes(texts_in(msgspec.to_builtins(made)), language)
    if found:
        raise refused(found)
    return made


def _known(value: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an answer that a framework has, ids given to its modules."""
    kept: dict[str, Any] = _kept(value, CourseFramework)
    contract = kept.get("continuityContract")
    if isinstance(contract, dict):
        contract = _kept(contract, Contract)
        terms = contract.get("terminology")
        if isinstance(terms, list):
            contract["terminology"] = [_kept(one, TermEntry) for one in terms]
        kept["continuityContract"] = contract
    if isinstance(kept.get("modules"), list):
        kept["modules"] = [
            _module(one, at) if isinstance(one, dict) else one
            for at, one in enumerate(kept["modules"])
        ]
    return kept


def _module(one: dict[str, Any], at: int) -> dict[str, Any]:
    kept: dict[str, Any] = _kept(one, ModuleSpec)
    for name in ("prerequisites", "incomingKnowledge", "excludedTopics"):
        if kept.get(name) is None:  # nothing is what a model means by leaving it out
            kept[name] = []
    if isinstance(kept["prerequisites"], list):
        kept["prerequisites"] = [_prerequisite(each) for each in kept["prerequisites"]]
    return kept | {"moduleId": f"m-{at + 1:02d}"}


def _prerequisite(one: Any) -> Any:  # noqa: ANN401 - any JSON value
    kept = _kept(one, Prerequisite)
    if isinstance(kept, dict) and kept.get("moduleIndex", 0) is None:
        del kept["moduleIndex"]
    return kept


def _kept(value: Any, shape: type[msgspec.Struct]) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(value, dict):
        return value
    known = {one.encode_name for one in msgspec.structs.fields(shape)}
    return {name: one for name, one in value.items() if name in known - _NOT_ITS_OWN}
