"""The group `etude classroom`; its commands stand in `classroom_jobs` and `classrooms`."""

import typer

app = typer.Typer()
