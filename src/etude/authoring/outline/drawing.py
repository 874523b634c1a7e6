"""Drawing slides: text and boxes on a canvas of 1000 by 562.5, in one of six palettes."""

import html
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from etude.authoring.wording import is_chinese
from etude.classroom.slides import (
    Background,
    Element,
    Gradient,
    GradientStop,
    ShapeElement,
    ShapeText,
    Slide,
    TextElement,
    Theme,
)

WIDTH: Final = 1000
HEIGHT: Final = 562.5
_FONT: Final = "Microsoft YaHei"
_LINE_HEIGHT: Final = 1.35
_PADDING: Final = 10

Align = Literal["left", "center", "right"]


class Palette(NamedTuple):
    """The colours of a module."""

    deep: str
    bright: str
    pale: str
    accent: str


PALETTES: Final = (
    Palette("#1f4e79", "#3b82c4", "#e8f1fa", "#d9772b"),
    Palette("#1d5c4a", "#2f9e7a", "#e6f5ef", "#c2571a"),
    Palette("#5b2a6e", "#8e4ea8", "#f4ebf8", "#c77a12"),
    Palette("#7a3b10", "#cc6f2c", "#fbf0e6", "#2c6fa6"),
    Palette("#17505e", "#2a8fa5", "#e5f4f7", "#c8512d"),
    Palette("#6b2237", "#b8466a", "#faeaf0", "#3a7d6b"),
)
INK: Final = "#22303c"
SOFT: Final = "#5a6b7a"
WHITE: Final = "#ffffff"


class Words(NamedTuple):
    """Text in one style."""

    text: str
    size: int
    color: str = INK
    bold: bool = False
    align: Align = "left"


class Canvas:
    """A slide in the making; elements are read in the order in which they are drawn."""

    def __init__(self, slide_id: str, palette: Palette) -> None:
        """Begin an empty slide."""
        self.palette = palette
        self._id = slide_id
        self._elements: list[Element] = []

    def words(self, box: tuple[float, float, float, float], *lines: Words, name: str = "") -> str:
        """Write lines at left, top, width, height; return the element's id."""
        left, top, width, height = box
        element = TextElement(
            id=self._next("t"),
            left=left,
            top=top,
            width=width,
            height=height,
            content="".join(map(_paragraph, lines)),
            default_font_name=_FONT,
            default_color=INK,
            line_height=_LINE_HEIGHT,
            name=name or None,
        )
        self._elements.append(element)
        return element.id

    def box(
        self, box: tuple[float, float, float, float], fill: str, *lines: Words, round_by: float = 14
    ) -> str:
        """Draw a box with rounded corners and, if there are any, lines in its middle."""
        left, top, width, height = box
        written = ShapeText(
            content="".join(map(_paragraph, lines)), default_font_name=_FONT, default_color=INK
        )
        element = ShapeElement(
            id=self._next("b"),
            left=left,
            top=top,
            width=width,
            height=height,
            view_box=(width, height),
            path=_rounded(width, height, round_by),
            fill=fill,
            text=written if lines else None,
        )
        self._elements.append(element)
        return element.id

    def put(self, make: Callable[[str], Element]) -> str:
        """Put an element of another kind there; `make` is given its id, which is returned."""
        element = make(self._next("e"))
        self._elements.append(element)
        return element.id

    @property
    def elements(self) -> Sequence[Element]:
        """What is drawn so far."""
        return tuple(self._elements)

    def slide(self, kind: Literal["cover", "content", "end"], source: dict[str, Any]) -> Slide:
        """Return the slide; `source` is kept beside it for its teacher: notes, lines."""
        dark = kind == "cover"
        stops = (
            GradientStop(pos=0, color=self.palette.deep),
            GradientStop(pos=100, color=self.palette.bright),
        )
        return Slide(
            id=self._id,
            viewport_ratio=HEIGHT / WIDTH,
            elements=tuple(self._elements),
            theme=Theme(
                background_color=self.palette.deep if dark else WHITE,
                theme_colors=tuple(self.palette),
                font_color=WHITE if dark else INK,
                font_name=_FONT,
            ),
            background=Background(
                type="gradient", gradient=Gradient(type="linear", colors=stops, rotate=35)
            )
            if dark
            else Background(type="solid", color=WHITE),
            section_tag=source,
            type=kind,
        )

    def heading(self, title: str, aside: str = "") -> str:
        """Draw the head of a slide; return the element's id."""
        self.box((0, 0, 14, HEIGHT), self.palette.bright, round_by=0)
        size = fitting(title, 660 if aside else 890, 56, most=34, least=20)
        made = self.words(
            (46, 30, 660 if aside else 900, 62), Words(title, size, self.palette.deep, bold=True)
        )
        if aside:
            self.words((700, 42, 256, 40), Words(aside, 17, SOFT, align="right"))
        self.box((56, 96, 72, 5), self.palette.accent, round_by=2)
        return made

    def _next(self, kind: str) -> str:
        return f"{self._id}-{kind}{len(self._elements) + 1}"


def fitting(text: str, width: float, height: float, *, most: int, least: int) -> int:
    """Return the largest size in pixels at which a text fits a box, roughly; `least` at least."""
    for size in range(most, least, -1):
        rows = lines_needed(text, width, size)
        if rows * size * _LINE_HEIGHT + 2 * _PADDING <= height + size * 0.3:
            return size
    return least


def lines_needed(text: str, width: float, size: float) -> int:
    """Return how many lines a text takes at a size, roughly."""
    long = sum(1.0 if is_chinese(char) or char in "，。！？；：（）“”" else 0.51 for char in text)  # noqa: RUF001 - wide marks
    return max(1, math.ceil(long * size / max(1.0, width - 2 * _PADDING)))


def columns(
    left: float, width: float, count: int, gap: float = 20
) -> Sequence[tuple[float, float]]:
    """Return left and width of equal columns."""
    each = (width - gap * (count - 1)) / count
    return [(left + at * (each + gap), each) for at in range(count)]


def highlighted(text: str, words: Iterable[str], color: str) -> str:
    """Return text as markup in which words stand out."""
    marked = html.escape(text, quote=False)
    for word in words:
        escaped = html.escape(word, quote=False)
        at = marked.casefold().find(escaped.casefold())
        if escaped and at >= 0:
            found = marked[at : at + len(escaped)]
            strong = f'<span style="color: {color}"><strong>{found}</strong></span>'
            return marked[:at] + strong + marked[at + len(escaped) :]
    return marked


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def _paragraph(words: Words) -> str:
    said = words.text if isinstance(words.text, Markup) else html.escape(words.text, quote=False)
    strong = f"<strong>{said}</strong>" if words.bold else said
    style = f"font-size: {words.size}px; color: {words.color}; text-align: {words.align}"
    return f'<p style="{style}">{strong}</p>'


def _rounded(width: float, height: float, by: float) -> str:
    r = min(by, width / 2, height / 2)
    w, h = width, height
    if r <= 0:
        return f"M 0 0 L {w:g} 0 L {w:g} {h:g} L 0 {h:g} Z"
    across = f"M {r:g} 0 L {w - r:g} 0 Q {w:g} 0 {w:g} {r:g} L {w:g} {h - r:g}"
    back = f"Q {w:g} {h:g} {w - r:g} {h:g} L {r:g} {h:g} Q 0 {h:g} 0 {h - r:g}"
    return f"{across} {back} L 0 {r:g} Q 0 0 {r:g} 0 Z"
