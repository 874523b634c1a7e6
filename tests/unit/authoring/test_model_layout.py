"""Slides that a model wrote, drawn by rule."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.authoring.model.errors import ModelAnswerRefusedError
from etude.authoring.model.layout import lay_out
from etude.authoring.model.shapes import SlideText
from etude.authoring.outline.drawing import HEIGHT, PALETTES, WIDTH
from etude.classroom.slides import LineElement, ShapeElement, Slide, TableElement, TextElement

_SIZE = re.compile(r"font-size: (\d+)px")


def said(*blocks: dict[str, Any], title: str = "How water travels") -> SlideText:
    return msgspec.convert({"title": title, "blocks": list(blocks)}, SlideText)


words = st.text(alphabet="abc defgh ijk水的旅行,.", min_size=1, max_size=120).filter(str.strip)
block = st.one_of(
    st.fixed_dictionaries({"kind": st.just("text"), "text": words}),
    st.fixed_dictionaries(
        {"kind": st.just("bullets"), "items": st.lists(words, min_size=1, max_size=6)}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("steps"), "items": st.lists(words, min_size=2, max_size=6)}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("definition"), "term": words, "meaning": words, "example": words}
    ),
    st.integers(1, 4).flatmap(
        lambda columns: st.fixed_dictionaries(
            {
                "kind": st.just("table"),
                "header": st.lists(words, min_size=columns, max_size=columns),
                "rows": st.lists(
                    st.lists(words, min_size=columns, max_size=columns), min_size=1, max_size=5
                ),
            }
        )
    ),
)
picture = st.fixed_dictionaries(
    {
        "kind": st.just("picture"),
        "idea": words,
        "caption": words,
        "shape": st.sampled_from(["chain", "cycle", "parts"]),
        "labels": st.lists(words.map(lambda one: one[:40]), min_size=2, max_size=6),
    }
)


def _require_too_much(refused: ModelAnswerRefusedError) -> None:
    assert [part.params["rule"] for part in refused.parts] == ["too_much"]


def boxes(slide: Slide) -> list[tuple[float, float, float, float]]:
    """Return where the words of a slide are, boxes behind them left out."""
    found = [
        (one.left, one.top, one.width, one.height)
        for one in slide.elements
        if isinstance(one, TextElement | TableElement)
    ]
    found += [
        (one.left, one.top, one.width, one.height)
        for one in slide.elements
        if isinstance(one, ShapeElement) and one.text is not None
    ]
    return found


@given(
    blocks=st.lists(block, min_size=1, max_size=3), shown=st.none() | picture, made=st.booleans()
)
def test_nothing_lies_over_anything_else_or_outside(
    blocks: list[dict[str, Any]], shown: dict[str, Any] | None, *, made: bool
) -> None:
    """Whatever fits is readable, inside the slide, and apart; whatever does not is refused."""
    content = said(*blocks, *([shown] if shown else []))
    reference = "media/picture-01.png" if made else None
    try:
        laid = lay_out(content, "s1", PALETTES[0], reference)
    except ModelAnswerRefusedError as refused:
        _require_too_much(refused)
        return
    ids = [one.id for one in laid.slide.elements]
    assert len(set(ids)) == len(ids)
    assert {name for name, _ in laid.elements} <= set(ids)
    for one in laid.slide.elements:
        assert one.left >= 0
        assert one.top >= 0
        if not isinstance(one, LineElement):
            assert one.left + one.width <= WIDTH
            assert one.top + one.height <= HEIGHT + 0.01
        if isinstance(one, TextElement):
            assert min(map(int, _SIZE.findall(one.content))) >= 13
    found = boxes(laid.slide)
    for at, (left, top, width, height) in enumerate(found):
        for other in found[at + 1 :]:
            apart = (
                left + width <= other[0] + 0.5
                or other[0] + other[2] <= left + 0.5
                or top + height <= other[1] + 0.5
                or other[1] + other[3] <= top + 0.5
            )
            assert apart, (found[at], other)


def test_the_same_content_is_the_same_slide() -> None:
    """A layout has no chance in it."""
    content = said({"kind": "bullets", "items": ["One", "Two"]})
    assert lay_out(content, "s1", PALETTES[1]) == lay_out(content, "s1", PALETTES[1])


def test_what_a_model_wrote_is_text_and_no_markup() -> None:
    """Tags that a model writes are shown as they are, and never read as tags."""
    sly = "<img src=x onerror=alert(1)> & <b>bold</b>"
    content = said(
        {"kind": "text", "text": sly},
        {"kind": "table", "header": [sly], "rows": [[sly]]},
        {"kind": "definition", "term": sly, "meaning": sly, "example": sly},
        title=sly,
    )
    slide = lay_out(content, "s1", PALETTES[0]).slide
    assert "<img" not in msgspec.json.encode(slide).decode()


@pytest.mark.parametrize(
    ("block", "path", "rule"),
    [
        ({"kind": "bullets", "items": ["long words " * 25] * 8}, "blocks", "too_much"),
        ({"kind": "table", "header": ["a", "b"], "rows": [["1"]]}, "blocks[0].rows[0]", "cells"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_path(
    block: dict[str, Any], path: str, rule: str
) -> None:
    """A slide that is too full, or a table that is not even, is told to whoever wrote it."""
    with pytest.raises(ModelAnswerRefusedError) as refused:
        lay_out(said(block), "s1", PALETTES[0])
    part = refused.value.parts[0]
    assert (part.params["path"], part.params["rule"]) == (path, rule)
