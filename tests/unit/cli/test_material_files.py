"""What commands take as material."""

from pathlib import Path

import pytest

from etude.authoring.errors import MaterialUnknownError, MaterialUnreadableError
from etude.cli.material_files import files_of, text_of


def test_of_a_folder_texts_and_recordings_are_taken(tmp_path: Path) -> None:
    """In the order of their names; a picture beside them is left alone."""
    for name in ("02.txt", "01.txt", "01.mp3", "cover.png"):
        (tmp_path / name).write_bytes(b"x")
    assert [one.name for one in files_of([tmp_path])] == ["01.mp3", "01.txt", "02.txt"]


def test_what_cannot_be_used_is_refused_by_its_name(tmp_path: Path) -> None:
    """A file of another kind, a folder without any that is read, bytes that are no text."""
    (tmp_path / "words.docx").write_bytes(b"PK")
    (tmp_path / "empty").mkdir()
    (tmp_path / "gbk.txt").write_bytes("春天".encode("gbk"))
    for path in (tmp_path / "words.docx", tmp_path / "empty"):
        with pytest.raises(MaterialUnreadableError) as caught:
            files_of([path])
        assert path.name in str(caught.value.params["file"])
        assert ".txt" in str(caught.value.params["reason"])
    with pytest.raises(MaterialUnreadableError) as caught:
        text_of(tmp_path / "gbk.txt")
    assert caught.value.params == {"file": "gbk.txt", "reason": "UTF-8"}
    with pytest.raises(MaterialUnknownError):
        files_of([tmp_path / "none.md"])
