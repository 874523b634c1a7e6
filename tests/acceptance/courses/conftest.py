"""A laptop on which a course is made, once; each test gets a copy of it."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from pydantic import SecretStr

from etude.settings import Settings
from etude.store import Database
from etude.testing.workshop import Workshop

TOKEN = "t" * 40


class Laptop(msgspec.Struct, frozen=True, kw_only=True):
    """A data folder with a made course in it."""

    data: Path
    course_id: str

    @property
    def database_url(self) -> str:
        return f"sqlite:///{self.data / 'etude.db'}"

    def settings(self, server: str | None = None) -> Settings:
        return Settings(
            data=self.data,
            courseware_publish_token=SecretStr(TOKEN),
            course_publish_server_base_url=server,
        )

    def environment(self, server: str | None = None, crash_at: str = "") -> dict[str, str]:
        more = {"ETUDE_COURSE_PUBLISH_SERVER_BASE_URL": server} if server else {}
        return more | {
            "ETUDE_DATA": str(self.data),
            "ETUDE_COURSEWARE_PUBLISH_TOKEN": TOKEN,
            "ETUDE_SPEECH_PROCESSES": "0",
            "ETUDE_LOG_FORMAT": "json",
            "ETUDE_CRASH_AT": crash_at,
        }


@pytest.fixture(scope="session")
def made_laptop(
    tmp_path_factory: pytest.TempPathFactory, sqlite_copy: Callable[[Path], str]
) -> Laptop:
    data = tmp_path_factory.mktemp("laptop")
    sqlite_copy(data)
    laptop = Laptop(data=data, course_id="")

    async def make() -> str:
        async with await Database.open(laptop.database_url) as database:
            course = await Workshop(laptop.settings(), database).made()
            assert course.status == "succeeded"
            return course.course_id

    return Laptop(data=data, course_id=asyncio.run(make()))


@pytest.fixture
def laptop(made_laptop: Laptop, tmp_path: Path) -> Laptop:
    data = shutil.copytree(made_laptop.data, tmp_path / "laptop")
    return Laptop(data=data, course_id=made_laptop.course_id)
