"""`etude bench bundle`: publishing a course of 15 modules, against plain tools on the same bytes.

The baseline of a first publication is `sha256sum` and then `zip -0` of the same files; that of an
unchanged one is `sha256sum` alone. Tools and publisher find the files in the page cache alike.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from etude.classroom.loading import classroom_from
from etude.clock import SystemClock
from etude.courseware.gates import ContinuityRef, CourseSource
from etude.courseware.publishing import Publisher
from etude.people.records import HOST
from etude.store import Database, upgrade
from etude.testing.courseware import document, lay_out, module

MIB: Final = 1 << 20
_COURSE: Final = "bench"
_FIGURES: Final = "figures.json"


def bundle(*, modules: int = 15, scenes: int = 20, media_mb: int = 40) -> dict[str, Any]:
    """Lay out a course, time the tools on its files, publish it twice in a process of its own.

    Args:
        modules: of the course.
        scenes: of each module; every one has a film of its own.
        media_mb: of each module, in all its scenes.
    """
    with tempfile.TemporaryDirectory(prefix="etude-bench-") as name:
        root = Path(name)
        for index in range(modules):
            _lay_out(root / "classrooms", index, scenes, media_mb * MIB)
        files = [str(path) for path in sorted((root / "classrooms").rglob("*.mp4"))]
        sums_s = min(_timed(["sha256sum", *files]) for _ in range(3))
        zipped_s = _timed(["zip", "-q", "-0", str(root / "plain.zip"), *files])
        (root / "plain.zip").unlink()
        figures = _published(root, modules)
    return {
        "modules": modules,
        "scenes": scenes,
        "media_mb": media_mb,
        **figures,
        "baseline": "sha256sum, then zip -0, of the same files",
        "sha256sum_s": round(sums_s, 3),
        "zip_s": round(zipped_s, 3),
        "ratio": round((sums_s + zipped_s) / figures["first_s"], 2),
        "unchanged_ratio": round(figures["unchanged_s"] / sums_s, 2),
    }


def _lay_out(root: Path, index: int, scenes: int, media_bytes: int) -> None:
    plain = document(f"{_COURSE}_{index}", f"Module {index}")
    made = plain["scenes"]
    folder = root / plain["id"] / "media"
    folder.mkdir(parents=True)
    for number in range(len(made), scenes):
        made.append(_film_scene(plain["id"], number))
    films = [one for one in made if one["id"].startswith("film_")]
    for scene in films:
        size = media_bytes // len(films)
        content = b"\0\0\0\x18ftypmp42" + os.urandom(min(size, MIB)) * (size // MIB + 1)
        (folder / f"{scene['id']}.mp4").write_bytes(content[:size])
    classroom_from(plain)
    lay_out(root, plain, number=index)


def _film_scene(classroom_id: str, number: int) -> dict[str, Any]:
    film = {
        "id": f"v_{number}",
        "type": "video",
        "left": 0,
        "top": 0,
        "width": 900,
        "height": 500,
        "src": f"media/film_{number}.mp4",
    }
    return {
        "id": f"film_{number}",
        "stageId": classroom_id,
        "type": "slide",
        "order": number + 1,
        "title": f"Film {number}",
        "content": {"type": "slide", "canvas": {"id": f"cv_{number}", "elements": [film]}},
    }


def _timed(command: list[str]) -> float:
    tool = shutil.which(command[0])
    if tool is None:
        message = f"{command[0]} is not installed"
        raise FileNotFoundError(message)
    start_s = time.perf_counter()
    subprocess.run([tool, *command[1:]], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own files
    return time.perf_counter() - start_s


def _published(root: Path, modules: int) -> dict[str, Any]:
    """Publish in a process of its own, whose memory is then that of publishing alone."""
    code = "from etude.cli.bench.bundle import publish_twice; publish_twice()"
    subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code, str(root), str(modules)],
        check=True,
        stdout=subprocess.DEVNULL,  # its logs
    )
    figures: dict[str, Any] = json.loads((root / _FIGURES).read_bytes())
    return figures


def publish_twice() -> None:
    """Publish the course below `argv[1]` twice; leave durations and the most memory there."""
    root, modules = Path(sys.argv[1]), int(sys.argv[2])
    (root / _FIGURES).write_text(json.dumps(asyncio.run(_publish_twice(root, modules))))


async def _publish_twice(root: Path, modules: int) -> dict[str, Any]:
    classrooms, url = root / "classrooms", f"sqlite:///{root / 'etude.db'}"
    await upgrade(url)
    source = _course(classrooms, modules)
    async with await Database.open(url) as database:
        publisher = Publisher(
            database,
            root / "blobs",
            SystemClock(),
            classrooms=classrooms,
            legacy=root / "older",
            token="x" * 32,
        )
        start_s = time.perf_counter()
        first = await publisher.publish(source, HOST)
        first_s = time.perf_counter() - start_s
        start_s = time.perf_counter()
        second = await publisher.publish(source, HOST)
        unchanged_s = time.perf_counter() - start_s
    return {
        "first_s": round(first_s, 3),
        "unchanged_s": round(unchanged_s, 3),
        "same": (first.new, second.new) == (True, False),
        "peak_mb": _peak_mb(),
    }


def _course(classrooms: Path, modules: int) -> CourseSource:
    refs: list[ContinuityRef] = []
    made = []
    for index in range(modules):
        made.append(module(classrooms, f"{_COURSE}_{index}", tuple(refs)))
        refs.append(
            ContinuityRef(
                module_index=index,
                classroom_id=f"{_COURSE}_{index}",
                semantic_hash=made[-1].semantic_hash or "",
            )
        )
    planned = tuple(one.module_id for one in made)
    return CourseSource(course_id=_COURSE, title="Bench", planned=planned, modules=tuple(made))


def _peak_mb() -> int:
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0
