"""`etude bench outline`: a course by rule, from material to classrooms on the disk.

The baseline is writing the same bytes, synced, which no author can save.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from etude.authoring.outline.lesson import Silence
from etude.authoring.outline.module import lesson_of, make_classroom
from etude.authoring.outline.planning import plan
from etude.authoring.reading import read_material
from etude.authoring.samples import SAMPLES, sample
from etude.classroom.digest import OutputDigest, output_digest
from etude.classroom.library import ClassroomLibrary
from etude.clock import SystemClock
from etude.files import Files, replace_file


def outline(*, runs: int = 3) -> dict[str, Any]:
    """Measure each sample, `runs` times; the slowest counts."""
    figures: dict[str, Any] = {"runs": runs, "limit_s": 5.0}
    with tempfile.TemporaryDirectory(prefix="etude-bench-") as folder:
        for name in SAMPLES:
            times = [_course(Path(folder) / f"{name}-{run}", name) for run in range(runs)]
            written = list(Path(folder).glob(f"{name}-0/*.json"))
            figures[name] = {
                "modules": len(written),
                "seconds": round(max(times), 3),
                "baseline": "the same bytes, written and synced",
                "baseline_seconds": round(_plain(Path(folder), written), 3),
            }
    slowest = max(figures[name]["seconds"] for name in SAMPLES)
    return figures | {"seconds": slowest, "holds": slowest < figures["limit_s"]}


def _course(folder: Path, name: str) -> float:
    library, begun = ClassroomLibrary(folder), time.perf_counter()
    syllabus = read_material([sample(name)])
    framework = plan(syllabus)
    digests: list[OutputDigest] = []
    for index in range(len(framework.modules)):
        lesson = lesson_of(syllabus, framework, index, digests)
        made = make_classroom(lesson, f"bench-{index}", Silence(), SystemClock().now())
        with library.draft(made.id, str(index)) as draft:
            draft.commit(made)
        digests.append(output_digest(made, library.media_hashes(made.id)))
    return time.perf_counter() - begun


def _plain(folder: Path, written: list[Path]) -> float:
    contents = [path.read_bytes() for path in written]
    begun = time.perf_counter()
    for at, content in enumerate(contents):
        replace_file(Files(), folder / f"plain-{at}.json", content)
    return time.perf_counter() - begun
