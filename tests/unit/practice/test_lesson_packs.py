"""Installed lessons of web on a gateway of its own: whole, verified, in one step."""

from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest

from etude.files import armed
from etude.practice.assigned import LessonAddress
from etude.practice.lesson_errors import LessonPackError
from etude.practice.lesson_packs import LessonPacks, Pack, PackClip, read_pack
from etude.testing.learners_acting import Part
from etude.testing.lesson_files import write_lesson

ADDRESS = LessonAddress(app_id="english_learning", task_id="shadowing", lesson_id="unit1")
PLACE = "english_learning/shadowing/lessons/unit1"


class Crash(BaseException):
    """The process ends here."""


class Web:
    """A server's lessons, as wrong as a test wants them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.change: dict[str, object] = {}
        self.cut = 0
        self.fetched: list[str] = []
        self.write("Good morning.", "How are you?")

    def write(self, *texts: str) -> None:
        parts = [
            Part(name=f"{number:02}.mp3", text=text, lasts_ms=300)
            for number, text in enumerate(texts, 1)
        ]
        write_lesson(self.root / PLACE, parts)

    def ask(self, address: LessonAddress) -> Pack:
        pack = read_pack(self.root, address)
        if pack is None:
            raise LessonPackError(lesson=address.lesson_id, reason="HTTP 404")
        return msgspec.structs.replace(pack, **self.change)

    def fetch(self, _address: LessonAddress, clip: PackClip, into: BinaryIO) -> None:
        self.fetched.append(clip.clip)
        content = (self.root / PLACE / clip.clip).read_bytes()
        into.write(content[: len(content) - self.cut])


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return Web(tmp_path / "web")


@pytest.fixture
def packs(tmp_path: Path, web: Web) -> LessonPacks:
    return LessonPacks(tmp_path / "packs", tmp_path / "own", web.ask, web.fetch)


def test_a_pack_is_fetched_once(web: Web, packs: LessonPacks) -> None:
    """Every file, then nothing more as long as web has the same."""
    folder = packs.made(ADDRESS)
    assert packs.made(ADDRESS) == folder
    assert web.fetched == ["01.mp3", "02.mp3"]
    assert (folder / "01.mp3").read_bytes() == (web.root / PLACE / "01.mp3").read_bytes()
    assert (folder / "02.txt").read_text() == "How are you?\n"
    assert packs.at_hand(ADDRESS) == folder


def test_another_lesson_of_the_name_takes_its_place(web: Web, packs: LessonPacks) -> None:
    """Replaced on web: until it is fetched the old one is at hand, then the new one, whole."""
    packs.made(ADDRESS)
    web.write("Good evening.", "How are you?", "Good night.")
    old = packs.kept(ADDRESS)
    assert old is not None
    assert [one.text for one in old.clips] == ["Good morning.", "How are you?"]
    packs.made(ADDRESS)
    new = packs.kept(ADDRESS)
    assert new is not None
    assert [one.text for one in new.clips] == ["Good evening.", "How are you?", "Good night."]


def test_what_is_installed_here_is_left_to_whoever_installed_it(
    tmp_path: Path, web: Web, packs: LessonPacks
) -> None:
    """The gateway's own lesson of that name is the one; web is not asked."""
    write_lesson(tmp_path / "own" / PLACE, [Part(name="01.mp3", text="Own.", lasts_ms=300)])
    web.root = tmp_path / "nowhere"
    assert packs.made(ADDRESS) == packs.at_hand(ADDRESS) == tmp_path / "own" / PLACE


def clip(name: str = "01.mp3") -> PackClip:
    return PackClip(clip=name, size_bytes=1, sha256="0" * 64, text=None)


@pytest.mark.parametrize(
    "change",
    [
        {"lesson_id": "unit2"},
        {"clips": (clip("../../../01.mp3"),)},
        {"clips": (clip(".hidden.mp3"),)},
        {"clips": (clip("01.sh"),)},
        {"clips": (clip("01.mp3"), clip("01.wav"))},
        {"clips": (clip("01.mp3"), clip("01.mp3"))},
        {"clips": (clip("01.mp3"),)},  # not that size, not that hash
    ],
)
def test_what_is_not_the_lesson_leaves_nothing(
    tmp_path: Path, web: Web, packs: LessonPacks, change: dict[str, object]
) -> None:
    """Another lesson, names that lead elsewhere, other bytes than told: refused, nothing kept."""
    web.change = change
    with pytest.raises(LessonPackError):
        packs.made(ADDRESS)
    assert packs.at_hand(ADDRESS) is None
    assert not [path for path in tmp_path.joinpath("packs").rglob("*") if path.is_file()]
    assert not (tmp_path / "01.mp3").exists()


def test_a_clip_that_is_cut_short_is_no_lesson(web: Web, packs: LessonPacks) -> None:
    """The connection ended early without saying so: nothing is played of it."""
    web.cut = 1
    with pytest.raises(LessonPackError):
        packs.made(ADDRESS)
    assert packs.at_hand(ADDRESS) is None


@pytest.mark.parametrize("name", ["pack.json", "01.mp3", "02.txt"])
def test_a_damaged_pack_is_removed(packs: LessonPacks, name: str) -> None:
    """One byte more in any of its files: it is at hand no more, and fetched again."""
    folder = packs.made(ADDRESS)
    with (folder / name).open("ab") as file:
        file.write(b"!")
    assert packs.at_hand(ADDRESS) is None
    assert not folder.exists()
    assert packs.made(ADDRESS) == packs.at_hand(ADDRESS)


@pytest.mark.parametrize("point", ["practice.lesson_pack.written", "practice.lesson_pack.placed"])
def test_a_kill_leaves_none_or_the_whole(tmp_path: Path, web: Web, point: str) -> None:
    """At every crash point; the next try has it, and nothing lies beside it."""

    def crash(reached: str) -> None:
        if reached == point:
            raise Crash

    def packs() -> LessonPacks:
        return LessonPacks(tmp_path / "packs", tmp_path / "own", web.ask, web.fetch)

    with armed(crash), pytest.raises(Crash):
        packs().made(ADDRESS)
    assert (packs().at_hand(ADDRESS) is None) == point.endswith("written")
    folder = packs().made(ADDRESS)
    assert [path.name for path in folder.parent.iterdir()] == ["unit1"]
    assert packs().kept(ADDRESS) is not None
