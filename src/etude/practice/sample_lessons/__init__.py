"""Short lessons for trying things out; `README.md` says what they are and how they were made."""

from pathlib import Path


def sample_lessons() -> Path:
    """Return the folder of the samples: laid out as a root of lessons, one for each of three apps.

    `english_learning/shadowing/lessons/greetings`, `story_time/retelling/lessons/crow` and
    `chinese_reading/follow_read/lessons/spring_dawn`. Read only: it is a part of the package.
    """
    return Path(__file__).parent
