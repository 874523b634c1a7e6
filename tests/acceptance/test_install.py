"""The wheel in an environment of its own: what a stranger gets from `pip install etude`."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from etude.testing.waiting import run_bounded, until

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "src" / "etude" / "testing" / "samples" / "violin-3min.jsonl"
LIMIT_S = 240  # what is not in a cache is loaded
UV = shutil.which("uv") or (str(found) if (found := ROOT / ".venv/bin/uv").exists() else None)


def execute(
    command: Sequence[str | Path], *, code: int = 0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command away from the repository, with nothing of this test run around it."""
    inherited = {name: os.environ[name] for name in os.environ if not name.startswith("ETUDE_")}
    ended = run_bounded(
        command,
        limit_s=LIMIT_S,
        cwd=os.environ["ETUDE_TEST_FOLDER"],
        env=inherited | {"LC_ALL": "C.UTF-8"} | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.fixture
def bare() -> Path:
    """A virtual environment with the wheel alone, made once a run; its folder."""
    folder = Path(os.environ["ETUDE_TEST_FOLDER"]) / "install"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        until(
            lambda: taken(lock.fileno()),
            "the install that another test process makes",
            limit_s=LIMIT_S,
        )
        if not (folder / "ready").exists():
            execute([sys.executable, "-m", "venv", folder / "venv"])
            pip = [folder / "venv" / "bin" / "pip", "--disable-pip-version-check", "--quiet"]
            execute([*pip, "wheel", "--no-deps", "--wheel-dir", folder / "dist", ROOT])
            execute([*pip, "install", *(folder / "dist").glob("*.whl")])
            (folder / "ready").touch()
    return folder


def test_the_wheel_holds_what_the_package_needs(bare: Path) -> None:
    """All files of the package and the licence are in, and nothing else is."""
    (wheel,) = (bare / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "etude"
    files = {
        f"etude/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files - names == set()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} <= {"etude", wheel.name[:11] + ".dist-info"}


def test_the_bare_install_is_the_edge_library(bare: Path) -> None:
    """`etude events recap` works, and no package of the server is there."""
    shown = execute([bare / "venv/bin/etude", "events", "recap", SAMPLE, "--json"])
    assert json.loads(shown.stdout)["phase_summary"] == {
        "preparation": {"positive": 2, "uncertain": 0, "issue": 0},
        "operation": {"positive": 4, "uncertain": 1, "issue": 0},
        "cleanup": {"positive": 0, "uncertain": 0, "issue": 0},
    }
    heavy = ["sqlalchemy", "litestar", "uvicorn", "alembic", "dbos", "asyncpg", "argon2"]
    probe = f"import importlib.util as u; print([m for m in {heavy} if u.find_spec(m)])"
    assert execute([bare / "venv/bin/python", "-c", probe]).stdout == "[]\n"


@pytest.mark.parametrize(
    "command",
    ["init", "doctor", "upgrade", "backup x.tar", "serve", "web", "worker", "user list", "demo"],
)
def test_a_server_command_names_the_line_that_installs_it(bare: Path, command: str) -> None:
    """No traceback: one line that says which part is missing and how to add it."""
    ended = execute([bare / "venv/bin/etude", *command.split()], code=4)
    assert ended.stdout == ""
    assert "pip install 'etude[server]'" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.skipif(UV is None, reason="needs uv, which this machine does not have")
def test_uv_tool_installs_a_server(bare: Path, tmp_path: Path) -> None:
    """`uv tool install 'etude[server]'` is enough for `etude init` and `etude doctor`."""
    assert UV is not None
    (wheel,) = (bare / "dist").glob("*.whl")
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    wanted = f"etude[server] @ {wheel.as_uri()}"
    execute([UV, "tool", "install", "--quiet", "--python", sys.executable, wanted], **places)
    ports = dict.fromkeys(("ETUDE_PORT", "ETUDE_GATEWAY_PORT", "ETUDE_GATEWAY_HTTP_PORT"), "0")
    data = {"ETUDE_DATA": str(tmp_path / "data")} | ports
    made = json.loads(execute([tmp_path / "bin/etude", "init", "--json"], **data).stdout)
    assert made["upload"]["token"].startswith("etd_")
    assert json.loads(execute([tmp_path / "bin/etude", "doctor", "--json"], **data).stdout)["ok"]
