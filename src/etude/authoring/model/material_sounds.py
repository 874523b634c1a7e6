"""The recordings of the material, by the sentence that they speak."""

from collections.abc import Mapping

from etude.authoring.authors import syllabus_of
from etude.authoring.classrooms.records import LessonRequest
from etude.authoring.material import Fact
from etude.authoring.outline.alone import lesson_syllabus
from etude.authoring.records import CourseRequest
from etude.authoring.wording import key
from etude.errors import InvalidError


def recorded_sentences(request: CourseRequest | LessonRequest) -> Mapping[str, Fact]:
    """Return the sentences of the material that have a recording, by their letters alone.

    Material that the outline author could make nothing of may still have some; what cannot be
    read as sentences has none.
    """
    if not request.sounds:
        return {}
    try:
        if isinstance(request, LessonRequest):
            syllabus = lesson_syllabus(request)
        else:
            syllabus = syllabus_of(request)
    except InvalidError:
        return {}
    facts = (fact for unit in syllabus.units for fact in unit.sentences)
    return {key(fact.text): fact for fact in facts if fact.sound is not None}
