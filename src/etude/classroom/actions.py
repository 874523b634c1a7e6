"""The script of a scene: 21 kinds of action.

`spotlight` and `laser` are for slides and nobody waits for them; the player waits for the end of
every other one. Each `wb_…` opens the board if it is closed.
"""

from typing import Annotated, Literal

from msgspec import Meta

from etude.classroom.fields import (
    ChartType,
    Colour,
    Config,
    Id,
    Label,
    Length,
    LongText,
    Part,
    Position,
    Reference,
    Text,
    Title,
)
from etude.classroom.slides import ChartData, LineStyle, Marker


class Act(Part, frozen=True, kw_only=True):
    """What every action has."""

    id: Id
    title: Label | None = None
    description: Text | None = None


class Speech(Act, frozen=True, kw_only=True, tag_field="type", tag="speech"):
    """Words that are spoken; `audio_ref` is their sound, a file of the classroom."""

    text: Annotated[str, Meta(min_length=1, max_length=8000)]
    audio_ref: Reference | None = None
    audio_invalidated: bool = False
    voice: Label | None = None
    speed: Annotated[float, Meta(ge=0.25, le=4)] = 1.0


class Spotlight(Act, frozen=True, kw_only=True, tag_field="type", tag="spotlight"):
    """Dims all but one element of the slide."""

    element_id: Id
    dim_opacity: Annotated[float, Meta(ge=0, le=1)] | None = None


class Laser(Act, frozen=True, kw_only=True, tag_field="type", tag="laser"):
    """Points at one element of the slide."""

    element_id: Id
    color: Colour | None = None


class PlayVideo(Act, frozen=True, kw_only=True, tag_field="type", tag="play_video"):
    """Plays a film of the slide to its end."""

    element_id: Id


class Discussion(Act, frozen=True, kw_only=True, tag_field="type", tag="discussion"):
    """Offers the learner to talk about something; `agent_id` begins."""

    topic: Title
    prompt: Text | None = None
    agent_id: Id | None = None


class WbOpen(Act, frozen=True, kw_only=True, tag_field="type", tag="wb_open"):
    """Opens the board."""


class WbClose(Act, frozen=True, kw_only=True, tag_field="type", tag="wb_close"):
    """Closes the board."""


class WbClear(Act, frozen=True, kw_only=True, tag_field="type", tag="wb_clear"):
    """Wipes the board."""


class Draw(Act, frozen=True, kw_only=True):
    """What every drawing has: where, and the name by which it is changed later."""

    x: Position
    y: Position
    element_id: Id | None = None
    """Without one it goes by the id of the action."""


class WbDrawText(Draw, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_text"):
    """Writes on the board."""

    content: LongText
    width: Length = 400
    height: Length = 100
    font_size: Length = 18
    color: Colour = "#333333"


class WbDrawShape(Draw, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_shape"):
    """Draws a shape on the board."""

    shape: Literal["rectangle", "circle", "triangle"]
    width: Length
    height: Length
    fill_color: Colour = "#5b9bd5"


class WbDrawChart(Draw, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_chart"):
    """Draws a chart on the board."""

    chart_type: ChartType
    width: Length
    height: Length
    data: ChartData
    theme_colors: Annotated[tuple[Colour, ...], Meta(max_length=50)] = ()


class WbDrawLatex(Draw, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_latex"):
    """Writes a formula on the board."""

    latex: LongText
    width: Length = 400
    height: Length = 80
    color: Colour = "#000000"


class WbDrawTable(Draw, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_table"):
    """Draws a table on the board."""

    width: Length
    height: Length
    data: Annotated[
        tuple[Annotated[tuple[Text, ...], Meta(max_length=100)], ...],
        Meta(min_length=1, max_length=500),
    ]


class WbDrawLine(Act, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_line"):
    """Draws a line on the board."""

    start_x: Position
    start_y: Position
    end_x: Position
    end_y: Position
    color: Colour = "#333333"
    width: Length = 2
    style: LineStyle = "solid"
    points: Annotated[tuple[Marker, ...], Meta(min_length=2, max_length=2)] = ("", "")
    element_id: Id | None = None


class WbDrawCode(Draw, frozen=True, kw_only=True, tag_field="type", tag="wb_draw_code"):
    """Writes code on the board."""

    language: Label
    code: LongText
    width: Length = 500
    height: Length = 300
    file_name: Label | None = None


class WbEditCode(Act, frozen=True, kw_only=True, tag_field="type", tag="wb_edit_code"):
    """Changes lines of code on the board."""

    element_id: Id
    operation: Literal["insert_after", "insert_before", "delete_lines", "replace_lines"]
    line_id: Id | None = None
    line_ids: Annotated[tuple[Id, ...], Meta(max_length=2000)] = ()
    content: LongText | None = None


class WbDelete(Act, frozen=True, kw_only=True, tag_field="type", tag="wb_delete"):
    """Takes one thing off the board."""

    element_id: Id


class WidgetHighlight(Act, frozen=True, kw_only=True, tag_field="type", tag="widget_highlight"):
    """Draws attention to a part of the activity, by a CSS selector."""

    target: Text
    content: Text | None = None


class WidgetAnnotation(Act, frozen=True, kw_only=True, tag_field="type", tag="widget_annotation"):
    """Explains a part of the activity."""

    target: Text
    content: Text | None = None


class WidgetReveal(Act, frozen=True, kw_only=True, tag_field="type", tag="widget_reveal"):
    """Shows a part of the activity that was hidden."""

    target: Text
    content: Text | None = None


class WidgetSetState(Act, frozen=True, kw_only=True, tag_field="type", tag="widget_setState"):
    """Sets variables of the activity."""

    state: Config
    content: Text | None = None


Action = (
    Speech
    | Spotlight
    | Laser
    | PlayVideo
    | Discussion
    | WbOpen
    | WbClose
    | WbClear
    | WbDrawText
    | WbDrawShape
    | WbDrawChart
    | WbDrawLatex
    | WbDrawTable
    | WbDrawLine
    | WbDrawCode
    | WbEditCode
    | WbDelete
    | WidgetHighlight
    | WidgetAnnotation
    | WidgetReveal
    | WidgetSetState
)
Actions = Annotated[tuple[Action, ...], Meta(max_length=500)]
