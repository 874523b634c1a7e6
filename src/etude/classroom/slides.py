"""Slides and whiteboards: a canvas of 1000 units' width with elements in painter's order."""

from typing import Annotated, Literal

from msgspec import Meta

from etude.classroom.fields import (
    ChartType,
    Colour,
    Config,
    Degrees,
    Font,
    Id,
    Label,
    Length,
    LongText,
    Markup,
    Number,
    Part,
    Position,
    Reference,
    Share,
    SvgPath,
    Text,
)

Point = Annotated[tuple[Position, ...], Meta(min_length=2, max_length=2)]
Marker = Literal["", "arrow", "dot"]
LineStyle = Literal["solid", "dashed", "dotted"]


class Link(Part, frozen=True, kw_only=True):
    """Where a click on an element leads: a page of the web, or a slide by its id."""

    type: Literal["web", "slide"]
    target: Reference


class Outline(Part, frozen=True, kw_only=True):
    """A border."""

    style: LineStyle | None = None
    width: Length | None = None
    color: Colour | None = None


class Shadow(Part, frozen=True, kw_only=True):
    """A shadow: offset and blur."""

    h: Position = 0
    v: Position = 0
    blur: Length = 0
    color: Colour = "#808080"


class GradientStop(Part, frozen=True, kw_only=True):
    """A colour of a gradient, at a place in per cent."""

    pos: Annotated[float, Meta(ge=0, le=100)]
    color: Colour


class Gradient(Part, frozen=True, kw_only=True):
    """A gradient."""

    type: Literal["linear", "radial"]
    colors: Annotated[tuple[GradientStop, ...], Meta(min_length=1, max_length=20)]
    rotate: Degrees = 0


class Placed(Part, frozen=True, kw_only=True):
    """What every element but a line has: its place and size."""

    id: Id
    left: Position
    top: Position
    width: Length
    height: Length
    rotate: Degrees = 0
    lock: bool = False
    group_id: Id | None = None
    link: Link | None = None
    name: Label | None = None


class TextElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text, as HTML of a few tags."""

    content: Markup
    default_font_name: Font = "Microsoft YaHei"
    default_color: Colour = "#333333"
    line_height: Length | None = None
    word_space: Position | None = None
    paragraph_space: Length | None = None
    opacity: Share | None = None
    fill: Colour | None = None
    outline: Outline | None = None
    shadow: Shadow | None = None
    vertical: bool = False
    text_type: Label | None = None


class ImageClip(Part, frozen=True, kw_only=True):
    """Which part of a picture is shown, in per cent, and in which shape."""

    range: Annotated[tuple[Point, ...], Meta(min_length=2, max_length=2)]
    shape: Label


class ImageElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture."""

    src: Reference
    fixed_ratio: bool = True
    filters: Annotated[dict[Label, Label], Meta(max_length=20)] | None = None
    clip: ImageClip | None = None
    flip_h: bool = False
    flip_v: bool = False
    radius: Length | None = None
    color_mask: Colour | None = None
    outline: Outline | None = None
    shadow: Shadow | None = None
    image_type: Label | None = None
    alt: Text | None = None
    """What it shows, for those who cannot see it."""


class ShapeText(Part, frozen=True, kw_only=True):
    """Text in a shape."""

    content: Markup
    align: Literal["top", "middle", "bottom"] = "middle"
    default_font_name: Font = "Microsoft YaHei"
    default_color: Colour = "#333333"
    line_height: Length | None = None
    word_space: Position | None = None
    paragraph_space: Length | None = None
    type: Label | None = None


class ShapeElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="shape"):
    """A shape, as the path of an SVG."""

    view_box: Point
    path: SvgPath
    fixed_ratio: bool = False
    fill: Colour = "#5b9bd5"
    gradient: Gradient | None = None
    pattern: Reference | None = None
    outline: Outline | None = None
    opacity: Share | None = None
    flip_h: bool = False
    flip_v: bool = False
    shadow: Shadow | None = None
    text: ShapeText | None = None
    special: bool = False
    path_formula: Label | None = None
    keypoints: Annotated[tuple[Number, ...], Meta(max_length=20)] = ()


class LineElement(Part, frozen=True, kw_only=True, tag_field="type", tag="line"):
    """A line; `width` is that of its stroke, `start` and `end` count from `left` and `top`."""

    id: Id
    left: Position
    top: Position
    width: Length
    start: Point
    end: Point
    style: LineStyle = "solid"
    color: Colour = "#333333"
    points: Annotated[tuple[Marker, ...], Meta(min_length=2, max_length=2)] = ("", "")
    broken: Point | None = None
    broken2: Point | None = None
    curve: Point | None = None
    cubic: Annotated[tuple[Point, ...], Meta(min_length=2, max_length=2)] | None = None
    shadow: Shadow | None = None
    lock: bool = False
    group_id: Id | None = None
    link: Link | None = None
    name: Label | None = None


class ChartData(Part, frozen=True, kw_only=True):
    """What a chart shows: one series a legend, one number a label."""

    labels: Annotated[tuple[Text, ...], Meta(max_length=500)]
    legends: Annotated[tuple[Text, ...], Meta(max_length=100)]
    series: Annotated[
        tuple[Annotated[tuple[Number, ...], Meta(max_length=500)], ...], Meta(max_length=100)
    ]


class ChartOptions(Part, frozen=True, kw_only=True):
    """How a chart is drawn."""

    line_smooth: bool | None = None
    stack: bool | None = None


class ChartElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="chart"):
    """A chart."""

    chart_type: ChartType
    data: ChartData
    options: ChartOptions | None = None
    theme_colors: Annotated[tuple[Colour, ...], Meta(max_length=50)] = ()
    fill: Colour | None = None
    text_color: Colour | None = None
    line_color: Colour | None = None
    outline: Outline | None = None


class CellStyle(Part, frozen=True, kw_only=True):
    """How a cell is written."""

    bold: bool | None = None
    em: bool | None = None
    underline: bool | None = None
    strikethrough: bool | None = None
    color: Colour | None = None
    backcolor: Colour | None = None
    fontsize: Label | None = None
    fontname: Font | None = None
    align: Literal["left", "center", "right", "justify"] | None = None


class Cell(Part, frozen=True, kw_only=True):
    """A cell of a table."""

    id: Id
    text: Markup
    colspan: Annotated[int, Meta(ge=1, le=100)] = 1
    rowspan: Annotated[int, Meta(ge=1, le=500)] = 1
    style: CellStyle | None = None


class TableTheme(Part, frozen=True, kw_only=True):
    """How the borders of a table are emphasised."""

    color: Colour
    row_header: bool = False
    row_footer: bool = False
    col_header: bool = False
    col_footer: bool = False


class TableElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="table"):
    """A table; `col_widths` are shares of the whole width."""

    outline: Outline = Outline()
    theme: TableTheme | None = None
    col_widths: Annotated[tuple[Share, ...], Meta(min_length=1, max_length=100)]
    cell_min_height: Length = 36
    data: Annotated[
        tuple[Annotated[tuple[Cell, ...], Meta(max_length=100)], ...],
        Meta(min_length=1, max_length=500),
    ]


class LatexElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="latex"):
    """A formula; `html` is how it was rendered, of the few tags that slides may have."""

    latex: LongText
    html: Markup | None = None
    path: SvgPath | None = None
    align: Literal["left", "center", "right"] | None = None
    color: Colour = "#000000"
    stroke_width: Length | None = None
    view_box: Point | None = None
    fixed_ratio: bool | None = None


class VideoElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="video"):
    """A film: a file (`src`), or one that is to be made (`media_ref`)."""

    src: Reference | None = None
    media_ref: Reference | None = None
    autoplay: bool = False
    poster: Reference | None = None
    ext: Label | None = None


class AudioElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """A sound with a button of its own."""

    src: Reference
    loop: bool = False
    autoplay: bool = False
    color: Colour = "#333333"
    fixed_ratio: bool | None = None
    ext: Label | None = None


class CodeLine(Part, frozen=True, kw_only=True):
    """A line of code."""

    id: Id
    content: Text


class CodeElement(Placed, frozen=True, kw_only=True, tag_field="type", tag="code"):
    """Code."""

    language: Label
    lines: Annotated[tuple[CodeLine, ...], Meta(max_length=2000)]
    file_name: Label | None = None
    show_line_numbers: bool | None = None
    font_size: Length | None = None


Element = (
    TextElement
    | ImageElement
    | ShapeElement
    | LineElement
    | ChartElement
    | TableElement
    | LatexElement
    | VideoElement
    | AudioElement
    | CodeElement
)
Elements = Annotated[tuple[Element, ...], Meta(max_length=500)]


class Theme(Part, frozen=True, kw_only=True):
    """The colours and the font of a slide."""

    background_color: Colour = "#ffffff"
    theme_colors: Annotated[tuple[Colour, ...], Meta(max_length=50)] = ("#5b9bd5",)
    font_color: Colour = "#333333"
    font_name: Font = "Microsoft YaHei"
    outline: Outline | None = None
    shadow: Shadow | None = None


class BackgroundImage(Part, frozen=True, kw_only=True):
    """A picture behind everything."""

    src: Reference
    size: Literal["cover", "contain", "repeat"] = "cover"


class Background(Part, frozen=True, kw_only=True):
    """What is behind everything."""

    type: Literal["solid", "image", "gradient"]
    color: Colour | None = None
    image: BackgroundImage | None = None
    gradient: Gradient | None = None


class Whiteboard(Part, frozen=True, kw_only=True):
    """A board: a slide without theme."""

    id: Id
    viewport_size: Annotated[float, Meta(gt=0, le=100_000)] = 1000
    viewport_ratio: Annotated[float, Meta(gt=0, le=100)] = 0.5625
    elements: Elements = ()
    background: Background | None = None
    animations: Annotated[tuple[Config, ...], Meta(max_length=500)] = ()


class Slide(Whiteboard, frozen=True, kw_only=True):
    """A slide."""

    theme: Theme = Theme()
    turning_mode: Label | None = None
    section_tag: Config | None = None
    type: Literal["cover", "contents", "transition", "content", "end"] | None = None
