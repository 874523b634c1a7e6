"""The kinds of values that a classroom is made of, each with its bounds."""

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

END: Final = r"$(?!\n)"
"""The end of a pattern: `$` alone would also stand before a last line feed."""
_COLOUR: Final = (
    r"^(#[0-9a-fA-F]{3,8}|[a-zA-Z]{1,32}|(rgb|hsl)a?\([0-9., %/]{1,60}\))" + END
)  # no `url(…)`: a colour asks nobody for anything

CLASSROOM_ID: Final = re.compile(r"^[a-zA-Z0-9_-]{1,64}" + END)
ClassroomId = Annotated[str, Meta(pattern=CLASSROOM_ID.pattern)]
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:-]{1,128}" + END)]
Label = Annotated[str, Meta(max_length=200)]
Title = Annotated[str, Meta(min_length=1, max_length=300)]
Text = Annotated[str, Meta(max_length=4000)]
LongText = Annotated[str, Meta(max_length=20_000)]
Markup = Annotated[str, Meta(max_length=200_000)]
"""HTML of a slide, of the few tags that `etude.classroom.markup` knows."""
Html = Annotated[str, Meta(max_length=8_000_000)]
"""A whole page, hostile until proven otherwise: shown in a sandbox, inlined before it is frozen."""
Words = Annotated[tuple[Text, ...], Meta(max_length=100)]
Reference = Annotated[str, Meta(max_length=2000)]
"""Where a picture, film or sound is; `etude.classroom.references` says which forms there are."""
Colour = Annotated[str, Meta(pattern=_COLOUR)]
Font = Annotated[str, Meta(pattern=r"^[^<>\"\\;{}():]{0,200}" + END)]
SvgPath = Annotated[str, Meta(pattern=r"^[MmLlHhVvCcSsQqTtAaZz0-9eE+\-., \t\n]{0,50000}" + END)]
Number = Annotated[float, Meta(ge=-1e9, le=1e9)]
Length = Annotated[float, Meta(ge=0, le=100_000)]
Position = Annotated[float, Meta(ge=-100_000, le=100_000)]
Degrees = Annotated[float, Meta(ge=-3600, le=3600)]
Share = Annotated[float, Meta(ge=0, le=1)]
Order = Annotated[int, Meta(ge=0, le=1_000_000)]
EpochMs = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
Config = Annotated[dict[str, Any], Meta(max_length=500)]
"""JSON whose shape is its widget's own; its depth and numbers are bounded by the rules."""
Records = Annotated[tuple[Config, ...], Meta(max_length=10_000)]
ChartType = Literal["bar", "column", "line", "pie", "ring", "area", "radar", "scatter"]


class Part(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
):
    """A part of the document: keys in camel case, none unknown, defaults not written."""
