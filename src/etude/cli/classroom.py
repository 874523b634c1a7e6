"""`etude classroom`, whole: the root loads it from here."""

from etude.cli import classroom_jobs, classrooms
from etude.cli.classroom_group import app

__all__ = ["app", "classroom_jobs", "classrooms"]
