import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.practice.card_list import LONGEST_PATH, MOST_PATHS, card_paths

ONE = "/english_learning/shadowing/lessons/unit01/01.mp3"
TWO = "/english_learning/shadowing/lessons/unit01/02.mp3"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ONE, TWO]),
        json.dumps({"files": [ONE, TWO]}),
        json.dumps({"count": 2, "data": {"list": [{"path": ONE, "size": 9}, {"path": TWO}]}}),
        json.dumps([{"name": "01.mp3", "path": ONE}, {"name": "02.mp3", "path": TWO}]),
        json.dumps([{"dir": ONE[:-7], "name": "01.mp3"}, {"dir": TWO[:-7], "name": "02.mp3"}]),
        json.dumps({ONE[:-7]: ["01.mp3", "02.mp3"]}),
        json.dumps(f"{ONE}\n{TWO}"),
        f"{ONE}\n{TWO}\n",
        f"MP3 files (2):\n1. {ONE}\n2. {TWO}\n",
        f"- {ONE} (12345 bytes)\r\n- {TWO} (999 bytes)",
        f"{ONE},{TWO}",
        f"{ONE[1:]};{TWO[1:]}",
        f"{ONE}|{TWO}".replace("/", "\\"),
        f'"{ONE}"\n"{TWO}"',
        f"{ONE}\n{TWO}\n{ONE}",
        f"/{ONE}\n{TWO.replace('/', '//')}",
    ],
)
def test_every_form_of_the_list_is_understood(text: str) -> None:
    """JSON or lines, with or without numbers, sizes and folders: the same two paths."""
    assert card_paths(text) == (ONE, TWO)


def test_names_keep_what_belongs_to_them() -> None:
    """Spaces, dots, Chinese and capitals are parts of names."""
    names = ["/a b/01 good.mp3", "/课文/春晓.mp3", "/A/01.MP3", "/a/v1.2.wav"]
    assert card_paths("\n".join(names)) == tuple(names)
    assert card_paths(json.dumps(names)) == tuple(names)


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/01.mp3",
        "/a/../01.mp3",
        "/a/._01.mp3",
        "/.Trash/01.mp3",
        "/a/01.txt",
        "/a/01",
        "/a/\u202e01.mp3",
        "/" + "a" * LONGEST_PATH + ".mp3",
        "",
    ],
)
def test_what_may_be_no_clip_is_left_out(path: str) -> None:
    """No way out of the card, nothing hidden, nothing endless, audio only."""
    assert card_paths(json.dumps([path, ONE])) == (ONE,)


def test_a_list_without_end_is_cut() -> None:
    """A device cannot fill the server."""
    assert len(card_paths(json.dumps([f"/{n}.mp3" for n in range(9_000)]))) == MOST_PATHS
    assert len(card_paths("\n".join(f"/{n}.mp3" for n in range(9_000)))) == MOST_PATHS


@pytest.mark.parametrize(
    "text",
    [
        *["", "[]", "{}", "null", "false", "no card", "[" * 100_000],
        *[" " * 300_000, "9" * 300_000, (" " * 1_000 + "\n") * 300],
        *[". mp3" * 50_000, "1. " * 90_000],
    ],
)
def test_nothing_is_nothing(text: str) -> None:
    """An answer without paths is an empty list, never an error."""
    assert card_paths(text) == ()


@given(
    text=st.text(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    ).map(json.dumps)
)
def test_no_answer_can_harm(text: str) -> None:
    """Any text: paths that stay within the card, or none."""
    for path in card_paths(text):
        assert path.startswith("/")
        assert ".." not in path.split("/")
        assert path.isprintable()
