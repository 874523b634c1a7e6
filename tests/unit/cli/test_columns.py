"""How wide a text is on a terminal, and where Chinese is broken into lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cli import columns


@pytest.mark.parametrize(
    ("text", "wide", "broken"),
    [
        ("一二三四五", 4, ["一二", "三四", "五"]),
        ("一二。三四", 4, ["一", "二。", "三四"]),
        ("一“二三”四", 4, ["一", "“二", "三”", "四"]),
        ("运行 `etude` 一", 8, ["运行", "`etude`", "一"]),
        ("用--speak生成", 7, ["用", "--speak", "生成"]),
        ("one two three", 7, ["one two", "three"]),
        ("一 二", 2, ["一", "二"]),
        ("ctranslate2-whisper", 4, ["ctranslate2-whisper"]),
        ("", 4, []),
    ],
    ids=["even", "stop", "quotes", "spaces", "words", "English", "a space", "long", "empty"],
)
def test_a_line_is_broken_where_it_may_end(text: str, wide: int, broken: list[str]) -> None:
    """Between Chinese characters and at spaces; not before a mark, nor behind an opening one."""
    assert list(columns.lines(text, wide)) == broken


@given(st.text(alphabet="一二。“”《》ab ,-`", max_size=60), st.integers(4, 20))
def test_nothing_is_lost_in_lines(text: str, wide: int) -> None:
    """The lines together are the text but for spaces; one is too long only if it has no break."""
    lines = list(columns.lines(text, wide))
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        assert columns.width(line) <= wide or list(columns.lines(line, 1)) == [line]


def test_a_chinese_character_takes_two_columns() -> None:
    """As a terminal draws it."""
    assert columns.width("课文 a") == 6
    assert columns.is_wide("课文 a")
    assert not columns.is_wide("lesson — a")
