from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from etude.clock import to_us
from etude.practice.assigned import Assigned, LessonAddress, current

NOW = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)
LESSON = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="greetings")
NOW_US = to_us(NOW)


def assigned(
    key: int, starts_us: int, ends_us: int | None = None, *, device: bool = False
) -> Assigned:
    return Assigned(
        assignment_key=key,
        assignment_id=f"as-{key}",
        lesson=LESSON,
        starts_us=starts_us,
        ends_us=ends_us,
        learner_key=None if device else 7,
        device_id="toy-1" if device else None,
    )


@st.composite
def assignments(draw: st.DrawFn) -> list[Assigned]:
    """Some of a learner and some of the learner's device, all about the same time."""
    found = []
    for key in range(draw(st.integers(0, 8))):
        starts_us = NOW_US + draw(st.integers(-5, 5))
        lasts_us = draw(st.none() | st.integers(1, 8))
        ends_us = None if lasts_us is None else starts_us + lasts_us
        found.append(assigned(key, starts_us, ends_us, device=draw(st.booleans())))
    return found


@given(assignments(), st.randoms())
def test_one_rule_says_which_counts(given_: list[Assigned], chance: Random) -> None:
    """It covers now; a learner's beats a device's, then the later start, then the later made."""
    covering = [each for each in given_ if each.covers(NOW_US)]
    found = current(given_, NOW)
    assert (found is None) == (not covering)
    if found is None:
        return
    assert found in covering
    rivals = [each for each in covering if each.learner_key is not None] or covering
    assert found in rivals
    assert all(each.starts_us <= found.starts_us for each in rivals)
    together = [each for each in rivals if each.starts_us == found.starts_us]
    assert found.assignment_key == max(each.assignment_key for each in together)
    shuffled = list(given_)
    chance.shuffle(shuffled)
    assert current(shuffled, NOW) == found


def test_times_are_half_open() -> None:
    """It counts at its start, and not at its end."""
    one = assigned(1, NOW_US, NOW_US + 10)
    assert current([one], NOW) == one
    assert current([one], NOW - timedelta(microseconds=1)) is None
    assert current([one], NOW + timedelta(microseconds=9)) == one
    assert current([one], NOW + timedelta(microseconds=10)) is None
    assert current([assigned(2, NOW_US)], NOW + timedelta(days=9999)) is not None
