"""Reading a rubric's YAML: shape, references and sense, every mistake with its line."""

from collections.abc import Iterator

from etude.documents import Document, Mistake, load, load_value
from etude.events.vocabulary import VOCABULARY
from etude.rubric.model import Condition, Grade, PolarityRule, Rubric, Signal


def load_rubric(text: str, file: str) -> Rubric:
    """Return the rubric that `text` says.

    Args:
        text: YAML.
        file: its name, for the messages.

    Raises:
        DocumentInvalidError: its parts name every mistake with file, line and reason.
    """
    return load(text, Rubric, file=file, rules=_rules)


def rubric_from(value: object, name: str) -> Rubric:
    """Return the rubric that plain JSON values say, as `load_rubric` would of their text.

    Much faster than YAML, and meant for what programs carry; `name` is for the messages.

    Raises:
        DocumentInvalidError: its parts name every mistake.
    """
    return load_value(value, Rubric, file=name, rules=_rules)


def _rules(document: Document, rubric: Rubric) -> Iterator[Mistake]:
    yield from _phases(document, rubric)
    for name, signal in rubric.signals.items():
        yield from _signal(document, rubric, name, signal)
    for name, dimension in rubric.dimensions.items():
        path = ("dimensions", name)
        if dimension.scale[0] >= dimension.scale[1]:
            yield _broken(document, (*path, "scale"), "the first number is the smaller one")
        seen: set[str] = set()
        for index, part in enumerate(dimension.parts):
            place = (*path, "from", index, "signal")
            yield from _known(document, rubric, place, part.signal)
            if part.signal in seen:
                yield document.mistake(place, "twice", name=part.signal)
            seen.add(part.signal)
    for index, gate in enumerate(rubric.safety_gates):
        at_gate = ("safety_gates", index, "signal")
        yield from _known(document, rubric, at_gate, gate.signal)
        found = rubric.signals.get(gate.signal)
        if found is not None and found.primitive != "safety":
            yield _broken(document, at_gate, "a gate is about a signal with the primitive safety")
    for index, growth in enumerate(rubric.growth):
        at_metric = ("growth", index, "metric")
        yield from _known(document, rubric, at_metric, growth.metric)
        compared = rubric.signals.get(growth.metric)
        if compared is not None and not _is_numeric(compared):
            yield _broken(document, at_metric, "growth compares a number of timing or quality")


def _is_numeric(signal: Signal) -> bool:
    """Whether the signal can measure a number."""
    by_words = signal.grade is not None and signal.grade.words is not None
    return signal.primitive in {"timing", "quality"} and not by_words


def _phases(document: Document, rubric: Rubric) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, phase in enumerate(rubric.phases):
        if phase.id in seen:
            yield document.mistake(("phases", index, "id"), "twice", name=phase.id)
        seen.add(phase.id)


def _known(
    document: Document, rubric: Rubric, place: tuple[str | int, ...], name: str
) -> Iterator[Mistake]:
    if name not in rubric.signals:
        yield document.mistake(place, "unknown_name", name=name)


def _signal(document: Document, rubric: Rubric, name: str, signal: Signal) -> Iterator[Mistake]:
    path = ("signals", name)
    phases = {phase.id for phase in rubric.phases}
    for index, phase in enumerate(signal.phases):
        if phase not in phases:
            yield document.mistake((*path, "phases", index), "unknown_name", name=phase)
    yield from _event_types(document, path, signal)
    yield from _measures(document, path, signal)
    yield from _belongings(document, path, signal)
    if signal.band is not None:
        yield from _band(document, path, signal)
    if signal.grade is not None:
        yield from _grade(document, (*path, "grade"), signal.grade)
    if signal.polarity is not None:
        yield from _polarity(document, (*path, "polarity"), signal.polarity)


def _event_types(document: Document, path: tuple[str, str], signal: Signal) -> Iterator[Mistake]:
    for index, kind in enumerate(signal.observe.event_types):
        if kind not in VOCABULARY:
            place = (*path, "observe", "event_types", index)
            yield document.mistake(place, "not_one_of", known=", ".join(VOCABULARY))
    for kind in signal.measure:
        if kind not in signal.observe.event_types:
            known = ", ".join(signal.observe.event_types)
            yield document.mistake((*path, "measure", kind), "not_one_of", known=known)


def _measures(document: Document, path: tuple[str, str], signal: Signal) -> Iterator[Mistake]:
    if signal.primitive in {"sequence", "timing", "quality"}:
        for kind in signal.observe.event_types:
            if kind not in signal.measure:
                reason = f"{signal.primitive} measures something in every event type: {kind}"
                yield _broken(document, path, reason)


def _belongings(document: Document, path: tuple[str, str], signal: Signal) -> Iterator[Mistake]:
    """Say which keys are for another primitive, or for each other."""
    if (signal.primitive == "sequence") != bool(signal.order):
        yield _broken(document, (*path, "order"), "`order` belongs to the primitive sequence")
    if len(set(signal.order)) < len(signal.order):
        yield _broken(document, (*path, "order"), "a step is there once")
    if signal.band is not None and signal.primitive != "timing":
        yield _broken(document, (*path, "band"), "`band` belongs to the primitive timing")
    if signal.band is not None and signal.grade is not None:
        yield _broken(document, (*path, "band"), "a signal has `grade` or `band`")
    if signal.primitive == "timing" and not (signal.band or signal.grade or signal.polarity):
        yield _broken(document, path, "timing has a `band`, a `grade` or a `polarity`")
    if signal.at_least != 1 and signal.primitive != "presence":
        yield _broken(document, (*path, "at_least"), "`at_least` belongs to the primitive presence")


def _band(document: Document, path: tuple[str, str], signal: Signal) -> Iterator[Mistake]:
    band = signal.band
    if band and not band.zero_below < band.at_least <= band.at_most < band.zero_above:
        reason = "zero_below < at_least <= at_most < zero_above"
        yield _broken(document, (*path, "band"), reason)


def _grade(document: Document, path: tuple[str, ...], grade: Grade) -> Iterator[Mistake]:
    line = grade.worst is not None and grade.best is not None
    either = grade.worst is not None or grade.best is not None
    if either == (grade.words is not None) or either != line or grade.words == {}:
        yield _broken(document, path, "a grade has `worst` and `best`, or `words`")
    elif line and grade.worst == grade.best:
        yield _broken(document, path, "`worst` and `best` are two numbers")


def _polarity(document: Document, path: tuple[str, ...], rule: PolarityRule) -> Iterator[Mistake]:
    for key, condition in (("positive", rule.positive), ("issue", rule.issue)):
        if isinstance(condition, Condition):
            given = (condition.at_least, condition.at_most, condition.one_of)
            if sum(one is not None for one in given) != 1:
                reason = "a condition is one of at_least, at_most, one_of"
                yield _broken(document, (*path, key), reason)


def _broken(document: Document, path: tuple[str | int, ...], reason: str) -> Mistake:
    return document.mistake(path, "rule", reason=reason)
