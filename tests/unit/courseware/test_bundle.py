"""Bundles: made the same everywhere, and refused when one byte is not as it must be."""

import hashlib
import io
import json
import random
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.courseware.bundle import Bundle
from etude.courseware.bundle_errors import (
    BundleClassroomError,
    BundleDamagedError,
    BundleEntryKindError,
    BundleHashMismatchError,
    BundleHeadersError,
    BundleIdMismatchError,
    BundleIncompleteError,
    BundleManifestError,
    BundleNameError,
    BundleNameTwiceError,
    BundleNotZipError,
    BundleOrderError,
    BundleOverlapError,
    BundleTableError,
    BundleTooManyEntriesError,
    BundleTrailingDataError,
)
from etude.courseware.checking import check_bundle
from etude.courseware.errors import FreezeRefusedError, SourceChangedError
from etude.courseware.freezing import Frozen, freeze
from etude.courseware.manifest import BundleManifest, manifest_bytes, sealed
from etude.courseware.source_files import hash_files
from etude.courseware.zip_writing import Entry, archive
from etude.errors import EtudeError
from etude.events.canonical import canonical
from etude.testing.courseware import document, lay_out

ID = "cw_tides"


def frozen(root: Path, plain: dict[str, Any] | None = None) -> Frozen:
    classroom = lay_out(root, plain or document())
    return freeze(classroom, hash_files(root / classroom.id), ID)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return b"".join(frozen(tmp_path_factory.mktemp("good")).blocks())


def checked(data: bytes) -> None:
    check_bundle(Bundle(io.BytesIO(data)), ID)


def codes(error: EtudeError) -> set[str]:
    return {part.code for part in error.parts}


def test_same_classroom_same_bytes(tmp_path: Path) -> None:
    """The same classroom in two places gives byte for byte the same bundle."""
    first, second = frozen(tmp_path / "one"), frozen(tmp_path / "two")
    assert b"".join(first.blocks()) == b"".join(second.blocks())
    assert first.content_hash == second.content_hash


def test_other_tools_read_it(good: bytes) -> None:
    """Names are sorted, nothing is compressed, and other tools can read and verify it."""
    names = zipfile.ZipFile(io.BytesIO(good)).namelist()
    assert names == sorted(names)
    assert zipfile.ZipFile(io.BytesIO(good)).testzip() is None
    assert all(one.compress_type == 0 for one in zipfile.ZipFile(io.BytesIO(good)).infolist())


def test_announced_size_is_true(tmp_path: Path) -> None:
    """`size` is known before a byte is written."""
    made = frozen(tmp_path)
    assert made.size == len(b"".join(made.blocks()))


def test_a_good_bundle_is_whole(good: bytes) -> None:
    """A bundle passes its own gate: roster, boards, voices, media, sounds, rubric are inside."""
    bundle = Bundle(io.BytesIO(good))
    classroom = check_bundle(bundle, ID)
    assert classroom.stage.generated_agent_configs[0].voice_config is not None
    assert classroom.stage.whiteboard
    assert classroom.scenes[4].content.clips[0].duration_ms == 200
    assert not classroom.scenes[3].content.project_v2.submissions
    assert "media/moon.png" not in (classroom.scenes[1].content.html or "")
    assert bundle.manifest.requires_live_model == ("pbl",)


def test_identity_and_hash_are_compared(good: bytes) -> None:
    """Another courseware's bundle, or one with another registered hash, is refused."""
    bundle = Bundle(io.BytesIO(good))
    with pytest.raises(BundleIdMismatchError):
        check_bundle(bundle, "cw_other")
    with pytest.raises(BundleHashMismatchError):
        check_bundle(bundle, ID, "sha256:" + "0" * 64)


@settings(max_examples=150)
@given(st.data())
def test_any_changed_byte_is_refused(good: bytes, data: st.DataObject) -> None:
    """Whichever byte changes, the bundle is refused with a code of its own."""
    place = data.draw(st.integers(0, len(good) - 1))
    change = data.draw(st.integers(1, 255))
    with pytest.raises(EtudeError) as caught:
        checked(good[:place] + bytes([good[place] ^ change]) + good[place + 1 :])
    assert caught.value.code.startswith("BUNDLE_")


def test_every_byte_outside_of_contents_is_refused(good: bytes) -> None:
    """Every single byte of headers, directory and manifest counts, not just those one draws."""
    picked = random.Random(5).sample(range(len(good)), 200)
    for place in [*range(64), *range(len(good) - 900, len(good)), *picked]:
        with pytest.raises(EtudeError):
            checked(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])


@settings(max_examples=60)
@given(st.data())
def test_any_cut_or_longer_bundle_is_refused(good: bytes, data: st.DataObject) -> None:
    """Cut off anywhere, or with anything behind or in front of it, a bundle is refused."""
    cut = data.draw(st.integers(0, len(good) - 1))
    more = data.draw(st.binary(min_size=1, max_size=40))
    for changed in (good[:cut], good + more, more + good):
        with pytest.raises(EtudeError):
            checked(changed)


@settings(max_examples=60)
@given(st.binary(max_size=400))
def test_noise_is_refused(noise: bytes) -> None:
    """What is no bundle is refused, not crashed on."""
    with pytest.raises(EtudeError):
        checked(noise)


Write = Callable[[zipfile.ZipFile], None]


def packed(write: Write) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as zipped:
        write(zipped)
    return target.getvalue()


def _link(zipped: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("classroom.json")
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    zipped.writestr(info, "/etc/passwd")


def _bomb(zipped: zipfile.ZipFile) -> None:
    zipped.writestr("classroom.json", bytes(10_000_000), zipfile.ZIP_DEFLATED)


def _many(zipped: zipfile.ZipFile) -> None:
    for number in range(10_000):
        zipped.writestr(f"{number}", b"")


def _names(*names: str) -> Write:
    def write(zipped: zipfile.ZipFile) -> None:
        for name in names:
            zipped.writestr(name, b"x")

    return write


MEDIA = "media/" + "a" * 64 + ".png"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("write", "error"),
    [
        (_names("../classroom.json"), BundleNameError),
        (_names("/etc/passwd"), BundleNameError),
        (_names("C:\\windows"), BundleNameError),
        (_names("media\\..\\x.png"), BundleNameError),
        (_names("media/a\x01.png"), BundleNameError),
        (_names("extra.txt"), BundleNameError),
        (_names("media/"), BundleEntryKindError),
        (_names("classroom.json", "classroom.json"), BundleNameTwiceError),
        (_names("classroom.json", "CLASSROOM.json"), BundleNameTwiceError),
        (_names("e\u0301", "\u00e9"), BundleNameTwiceError),
        (_names(MEDIA, "manifest.json"), BundleOrderError),
        (_link, BundleEntryKindError),
        (_bomb, BundleEntryKindError),
        (_many, BundleTooManyEntriesError),
        (_names("manifest.json"), BundleHeadersError),
        (_names(), BundleNotZipError),
    ],
)
def test_hostile_archives_are_refused(write: Write, error: type[EtudeError]) -> None:
    """Slip, collisions, links, bombs, ten thousand entries: each is refused by its code."""
    with pytest.raises(error):
        checked(packed(write))


def test_overlapping_entries_are_refused(good: bytes) -> None:
    """Two lines of the directory that lead to the same bytes are refused."""
    start = int.from_bytes(good[-6:-2], "little")
    second = good.index(b"PK\x01\x02", start + 4)
    changed = bytearray(good)
    changed[second + 42 : second + 46] = bytes(4)
    with pytest.raises(BundleOverlapError):
        checked(bytes(changed))


def test_bytes_between_files_are_refused(good: bytes) -> None:
    """Bytes that no entry claims are refused, even where the end record is right."""
    start = int.from_bytes(good[-6:-2], "little")
    changed = (
        good[:start] + b"hidden" + good[start:-6] + (start + 6).to_bytes(4, "little") + good[-2:]
    )
    with pytest.raises(BundleTrailingDataError):
        checked(changed)


def rebuilt(good: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Return a bundle whose archive is right and whose contents were changed."""
    zipped = zipfile.ZipFile(io.BytesIO(good))
    files = {name: zipped.read(name) for name in zipped.namelist()}
    change(files)

    def entry(name: str, content: bytes) -> Entry:
        return Entry(
            name=name,
            size=len(content),
            crc32=zlib.crc32(content),
            opens=lambda: io.BytesIO(content),
        )

    return b"".join(archive([entry(name, content) for name, content in files.items()]))


def edited(
    change: Callable[[dict[str, Any]], None], *, seal: bool = False
) -> Callable[[dict[str, bytes]], None]:

    def apply(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        change(manifest)
        files["manifest.json"] = canonical(manifest)
        if seal:
            files["manifest.json"] = manifest_bytes(
                sealed(msgspec.convert(manifest, BundleManifest))
            )

    return apply


def replaced_classroom(
    change: Callable[[dict[str, Any]], None],
) -> Callable[[dict[str, bytes]], None]:
    """Change the classroom and seal the bundle anew, as somebody who knows the format would."""

    def apply(files: dict[str, bytes]) -> None:
        plain = json.loads(files["classroom.json"])
        change(plain)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
        files["classroom.json"] = text

        def row(manifest: dict[str, Any]) -> None:
            for one in manifest["files"]:
                if one["path"] == "classroom.json":
                    one |= {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}

        edited(row, seal=True)(files)

    return apply


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda files: files.pop("manifest.json"), BundleManifestError),
        (lambda files: files.pop("classroom.json"), BundleTableError),
        (lambda files: files.update({MEDIA: b"x"}), BundleTableError),
        (
            lambda files: files.update({"classroom.json": files["classroom.json"] + b" "}),
            BundleTableError,
        ),
        (edited(lambda m: m.update(title="Other")), BundleHashMismatchError),
        (edited(lambda m: m.update(coursewareVersion=7)), BundleManifestError),
        (edited(lambda m: m["files"].reverse()), BundleManifestError),
        (edited(lambda m: m.update(contentHashVersion=1)), BundleManifestError),
        (
            edited(lambda m: m["completeness"].update(complete=False), seal=True),
            BundleIncompleteError,
        ),
        (edited(lambda m: m.update(requiresLiveModel=[]), seal=True), BundleTableError),
        (replaced_classroom(lambda c: c.update(dslVersion="9.9.9")), BundleClassroomError),
        (
            replaced_classroom(lambda c: c["scenes"][0]["actions"][0].pop("audioRef")),
            BundleIncompleteError,
        ),
        (
            replaced_classroom(
                lambda c: c["scenes"][1]["content"].update(
                    html="<img src=https://example.org/a.png>"
                )
            ),
            BundleIncompleteError,
        ),
        (
            replaced_classroom(
                lambda c: c["scenes"][3]["content"]["projectV2"].update(submissions=[{"by": "x"}])
            ),
            BundleIncompleteError,
        ),
    ],
)
def test_contents_are_not_believed(
    good: bytes, change: Callable[[dict[str, bytes]], None], error: type[EtudeError]
) -> None:
    """A well-formed archive with other contents is refused, whatever was changed."""
    with pytest.raises(error):
        checked(rebuilt(good, change))


def test_a_swapped_picture_is_refused(good: bytes) -> None:
    """Other bytes of the same length under a right checksum are refused by their hash."""

    def swap(files: dict[str, bytes]) -> None:
        name = next(one for one in files if one.endswith(".png"))
        files[name] = bytes(reversed(files[name]))

    with pytest.raises(BundleDamagedError):
        checked(rebuilt(good, swap))


def test_all_findings_at_once(tmp_path: Path) -> None:
    """Everything that keeps a classroom from being frozen is told at once, each by its place."""
    plain = document()
    plain["scenes"][0]["actions"][0].pop("audioRef")
    plain["scenes"][0]["content"]["canvas"]["background"]["image"]["src"] = (
        "https://example.org/a.png"
    )
    plain["scenes"][1]["content"]["html"] = "<script src='https://cdn.example.org/x.js'></script>"
    plain["scenes"][4]["content"]["clips"][0].pop("audioRef")
    plain["scenes"][4]["content"].pop("rubric")
    plain["stage"]["whiteboard"][0]["elements"][0]["src"] = "gen_img_1"
    with pytest.raises(FreezeRefusedError) as caught:
        frozen(tmp_path, plain)
    assert codes(caught.value) == {
        "SPEECH_AUDIO_MISSING",
        "MEDIA_UNRESOLVED",
        "INTERACTIVE_ASSET_UNRESOLVED",
        "PRACTICE_AUDIO_MISSING",
        "PRACTICE_RUBRIC_MISSING",
    }
    assert sum(part.code == "MEDIA_UNRESOLVED" for part in caught.value.parts) == 2


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    """A page that calls itself a picture is refused, and so is an SVG with a script."""
    classroom = lay_out(tmp_path, document())
    folder = tmp_path / classroom.id
    (folder / "media" / "moon.png").write_bytes(b"<html>")
    with pytest.raises(FreezeRefusedError) as caught:
        freeze(classroom, hash_files(folder), ID)
    assert codes(caught.value) == {"MEDIA_UNRESOLVED"}


@pytest.mark.parametrize(
    "svg",
    [
        "<svg><script>x()</script></svg>",
        "<svg onload='x()'></svg>",
        "<svg><image href='https://example.org/a.png'/></svg>",
        "<svg><style>a{fill:url(https://example.org/a)}</style></svg>",
        "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg></svg>",
    ],
)
def test_an_svg_that_does_more_than_draw_is_refused(tmp_path: Path, svg: str) -> None:
    """An SVG with scripts, handlers or anything from elsewhere is refused."""
    plain = document()
    plain["stage"]["whiteboard"][0]["elements"][0]["src"] = "media/a.svg"
    classroom = lay_out(tmp_path, plain)
    (tmp_path / classroom.id / "media" / "a.svg").write_text(svg)
    with pytest.raises(FreezeRefusedError):
        freeze(classroom, hash_files(tmp_path / classroom.id), ID)


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    """A file that is overwritten between hashing and writing ends the freezing."""
    made = frozen(tmp_path)
    (tmp_path / "tides01" / "media" / "moon.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"another" * 9)
    with pytest.raises(SourceChangedError):
        b"".join(made.blocks())
