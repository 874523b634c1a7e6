"""Laying out a slide by rule: what a model wrote, large enough to read, nothing over anything else.

Models are poor at geometry (see `docs/decisions/0007-model-writes-we-draw.md`). The same content
gives the same slide; what does not fit at the smallest size is refused, so that it is shortened.
"""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from etude.authoring.model.answers import mistake, refused
from etude.authoring.model.shapes import (
    Block,
    BulletsBlock,
    DefinitionBlock,
    PictureBlock,
    SlideText,
    StepsBlock,
    TableBlock,
    TextBlock,
)
from etude.authoring.outline.drawing import (
    INK,
    SOFT,
    WHITE,
    Canvas,
    Markup,
    Palette,
    Words,
    fitting,
    highlighted,
    lines_needed,
)
from etude.classroom.slides import Cell, CellStyle, ImageElement, LineElement, Slide, TableElement

_LEFT: Final = 46.0
_TOP: Final = 118.0
_WIDTH: Final = 910.0
_HEIGHT: Final = 414.0
_GAP: Final = 14.0
_LARGEST: Final = 30
_SMALLEST: Final = 14
_LINE: Final = 1.35
_PAD: Final = 20.0
_NUMBER: Final = 44.0
_PICTURE: Final = (556.0, _TOP, 400.0, 300.0)
_BESIDE: Final = 494.0
_CAPTION: Final = 56.0

Box = tuple[float, float, float, float]


class Laid(NamedTuple):
    """A slide, and what its elements say: id and words, in the order in which they are read."""

    slide: Slide
    elements: Sequence[tuple[str, str]]


def lay_out(said: SlideText, name: str, palette: Palette, picture: str | None = None) -> Laid:
    """Return the slide that shows what is said.

    Args:
        said: the content.
        name: the slide's, different from every other one's of the lesson.
        palette: its colours.
        picture: the reference of the picture that was made; None = its diagram is drawn.

    Raises:
        ModelAnswerRefusedError: it is more than fits, or a table is not even.
    """
    _require_even(said)
    canvas, ids = Canvas(f"c-{name}", palette), list[tuple[str, str]]()
    ids.append((canvas.heading(said.title), said.title))
    blocks = [one for one in said.blocks if not isinstance(one, PictureBlock)]
    pictures = [one for one in said.blocks if isinstance(one, PictureBlock)]
    width = _BESIDE if pictures and blocks else _WIDTH
    if blocks:
        size = _size_for(blocks, width)
        _draw_blocks(canvas, blocks, width, size, ids)
    if pictures:
        box = _PICTURE if blocks else (_LEFT + 205, _TOP, 500.0, 340.0)
        ids.append((_picture(canvas, pictures[0], box, picture), pictures[0].caption))
    notes = {"note": said.notes} if said.notes else {}
    return Laid(canvas.slide("content", {"source": "model"} | notes), tuple(ids))


def _require_even(said: SlideText) -> None:
    found = []
    for at, block in enumerate(said.blocks):
        if isinstance(block, TableBlock):
            found += [
                mistake(f"blocks[{at}].rows[{row}]", "cells", f"wanted {len(block.header)}")
                for row, cells in enumerate(block.rows)
                if len(cells) != len(block.header)
            ]
    if sum(isinstance(one, PictureBlock) for one in said.blocks) > 1:
        found.append(mistake("blocks", "pictures", "at most one"))
    if found:
        raise refused(found)


def _size_for(blocks: Sequence[Block], width: float) -> int:
    for size in range(_LARGEST, _SMALLEST - 1, -1):
        tall = sum(_tall(block, width, size) for block in blocks) + _GAP * (len(blocks) - 1)
        if tall <= _HEIGHT:
            return size
    raise refused([mistake("blocks", "too_much", "more than one slide can show: shorten or drop")])


def _draw_blocks(
    canvas: Canvas, blocks: Sequence[Block], width: float, size: int, ids: list[tuple[str, str]]
) -> None:
    heights = [_tall(block, width, size) for block in blocks]
    spare = _HEIGHT - sum(heights) - _GAP * (len(blocks) - 1)
    gap = _GAP + min(spare / (len(blocks) + 1), 24.0)
    top = _TOP
    for block, height in zip(blocks, heights, strict=True):
        ids.append(
            (_DRAW[type(block)](canvas, block, (_LEFT, top, width, height), size), words_of(block))
        )
        top += height + gap


def words_of(block: Block) -> str:
    """Return what a block says, in one line."""
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, BulletsBlock | StepsBlock):
        return "; ".join(block.items)
    if isinstance(block, DefinitionBlock):
        return f"{block.term}: {block.meaning}"
    if isinstance(block, TableBlock):
        return " | ".join(block.header)
    return block.caption


def _lines(text: str, width: float, size: float) -> float:
    return lines_needed(text, width, size) * size * _LINE


def _tall(block: Block, width: float, size: int) -> float:
    """Return how high a block is at a size."""
    if isinstance(block, TextBlock):
        return _lines(block.text, width, size) + _PAD
    if isinstance(block, BulletsBlock):
        return sum(_lines(f"• {one}", width, size) for one in block.items) + _PAD
    if isinstance(block, StepsBlock):
        return sum(_step_height(one, width, size) for one in block.items)
    if isinstance(block, DefinitionBlock):
        return sum(_lines(one.text, width - 28, one.size) for one in _definition(block, size)) + 32
    if isinstance(block, TableBlock):
        return sum(_row_heights(block, width, size))
    return 0.0


def _step_height(item: str, width: float, size: int) -> float:
    return max(_lines(item, width - 60, size) + _PAD, _NUMBER) + 6


def _definition(block: DefinitionBlock, size: int) -> Iterator[Words]:
    yield Words(block.term, size + 2, bold=True)
    yield Words(block.meaning, size)
    if block.example:
        yield Words(block.example, size)


def _row_heights(block: TableBlock, width: float, size: int) -> list[float]:
    share = width / len(block.header)
    small = _cell_size(size)
    rows = (block.header, *block.rows)
    return [max(_lines(cell, share, small) for cell in row) + 14 for row in rows]


def _cell_size(size: int) -> int:
    return max(_SMALLEST, min(size, 22))


def _draw_text(canvas: Canvas, block: TextBlock, box: Box, size: int) -> str:
    return canvas.words(box, Words(block.text, size))


def _draw_bullets(canvas: Canvas, block: BulletsBlock, box: Box, size: int) -> str:
    return canvas.words(box, *(Words(f"• {item}", size) for item in block.items))


def _draw_steps(canvas: Canvas, block: StepsBlock, box: Box, size: int) -> str:
    left, top, width, _ = box
    first = ""
    for at, item in enumerate(block.items, 1):
        height = _step_height(item, width, size) - 6
        number = Words(str(at), 20, WHITE, bold=True, align="center")
        canvas.box((left, top, _NUMBER, _NUMBER), canvas.palette.bright, number, round_by=22)
        made = canvas.words((left + 56, top, width - 56, height), Words(item, size))
        first = first or made
        top += height + 6
    return first


def _draw_definition(canvas: Canvas, block: DefinitionBlock, box: Box, size: int) -> str:
    left, top, width, height = box
    canvas.box(box, canvas.palette.pale)
    canvas.box((left, top, 8, height), canvas.palette.accent, round_by=4)
    term, meaning, *rest = _definition(block, size)
    lines = [term._replace(color=canvas.palette.deep), meaning]
    for example in rest:
        shown = Markup(highlighted(example.text, [block.term], canvas.palette.accent))
        lines.append(Words(shown, size, SOFT))
    return canvas.words((left + 16, top + 6, width - 28, height - 12), *lines)


def _draw_table(canvas: Canvas, block: TableBlock, box: Box, size: int) -> str:
    left, top, width, height = box
    small = _cell_size(size)
    share = math.floor(1e6 / len(block.header)) / 1e6

    def cell(row: int, column: int, text: str) -> Cell:
        head = row == 0
        style = CellStyle(
            fontsize=f"{small}px",
            bold=head or None,
            color=WHITE if head else INK,
            backcolor=canvas.palette.bright if head else canvas.palette.pale if row % 2 else WHITE,
        )
        return Cell(id=f"r{row}c{column}", text=html.escape(text, quote=False), style=style)

    rows = (block.header, *block.rows)
    return canvas.put(
        lambda name: TableElement(
            id=name,
            left=left,
            top=top,
            width=width,
            height=height,
            col_widths=tuple(share for _ in block.header),
            cell_min_height=height / len(rows) - 1,
            data=tuple(
                tuple(cell(row, column, text) for column, text in enumerate(cells))
                for row, cells in enumerate(rows)
            ),
        )
    )


_DRAW: Final[dict[type, Callable[..., str]]] = {
    TextBlock: _draw_text,
    BulletsBlock: _draw_bullets,
    StepsBlock: _draw_steps,
    DefinitionBlock: _draw_definition,
    TableBlock: _draw_table,
}


def _picture(canvas: Canvas, block: PictureBlock, box: Box, reference: str | None) -> str:
    left, top, width, height = box
    if reference is None:
        made = _diagram(canvas, block, box)
    else:
        side = min(width, height)
        made = canvas.put(
            lambda name: ImageElement(
                id=name,
                left=left + (width - side) / 2,
                top=top,
                width=side,
                height=side,
                src=reference,
                alt=block.caption or block.idea,
            )
        )
    if block.caption:
        size = fitting(block.caption, width, _CAPTION, most=19, least=13)
        line = Words(block.caption, size, SOFT, align="center")
        canvas.words((left, top + height + 6, width, _CAPTION), line)
    return made


def _diagram(canvas: Canvas, block: PictureBlock, box: Box) -> str:
    """Draw labels as boxes: one below the other, in a circle, or as parts of a whole."""
    left, top, width, height = box
    canvas.box(box, canvas.palette.pale)
    if block.shape == "cycle" and len(block.labels) > 2:  # noqa: PLR2004 - two make no circle
        places = list(_around(box, len(block.labels)))
        links = [(at, (at + 1) % len(places)) for at in range(len(places))]
    elif block.shape == "parts":
        places = list(_spread(box, len(block.labels)))
        links = []
    else:
        each = height / len(block.labels)
        wide = width * 0.7
        places = [
            (left + (width - wide) / 2, top + each * at + 8, wide, each - 22)
            for at in range(len(block.labels))
        ]
        links = [(at, at + 1) for at in range(len(places) - 1)]
    for begin, end in links:
        _arrow(canvas, places[begin], places[end])
    first = ""
    for label, place in zip(block.labels, places, strict=True):
        size = fitting(label, place[2] - 12, place[3] - 8, most=22, least=12)
        words = Words(label, size, canvas.palette.deep, bold=True, align="center")
        made = canvas.box(place, WHITE, words, round_by=12)
        first = first or made
    return first


def _around(box: Box, count: int) -> Iterator[Box]:
    left, top, width, height = box
    wide, tall = width * 0.34, height * 0.17
    for at in range(count):
        turn = 2 * math.pi * at / count - math.pi / 2
        x = left + width / 2 + math.cos(turn) * (width - wide - 16) / 2
        y = top + height / 2 + math.sin(turn) * (height - tall - 16) / 2
        yield (round(x - wide / 2, 2), round(y - tall / 2, 2), round(wide, 2), round(tall, 2))


def _spread(box: Box, count: int) -> Iterator[Box]:
    left, top, width, height = box
    rows = math.ceil(count / 2)
    wide, tall = (width - 36) / 2, (height - 12 * (rows + 1)) / rows
    for at in range(count):
        row, column = divmod(at, 2)
        alone = count % 2 == 1 and at == count - 1
        x = left + (width - wide) / 2 if alone else left + 12 + column * (wide + 12)
        yield (x, top + 12 + row * (tall + 12), wide, tall)


def _arrow(canvas: Canvas, begin: Box, end: Box) -> None:
    """Draw an arrow from the edge of one box to the edge of another."""
    start, stop = _edge(begin, end), _edge(end, begin)
    left, top = min(start[0], stop[0]), min(start[1], stop[1])
    canvas.put(
        lambda name: LineElement(
            id=name,
            left=round(left, 2),
            top=round(top, 2),
            width=3,
            start=(round(start[0] - left, 2), round(start[1] - top, 2)),
            end=(round(stop[0] - left, 2), round(stop[1] - top, 2)),
            color=canvas.palette.bright,
            points=("", "arrow"),
        )
    )


def _edge(box: Box, towards: Box) -> tuple[float, float]:
    """Return where the line from a box's middle to another's leaves the box."""
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
    dx = towards[0] + towards[2] / 2 - x
    dy = towards[1] + towards[3] / 2 - y
    scale = min(
        box[2] / 2 / abs(dx) if dx else math.inf, box[3] / 2 / abs(dy) if dy else math.inf, 1.0
    )
    return x + dx * scale, y + dy * scale
