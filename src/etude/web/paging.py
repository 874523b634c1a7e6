"""Parameters of every list: how much at once, and where to go on."""

from typing import Annotated, TypeAlias

from litestar.params import QueryParameter

from etude.people.paging import MAX_LIMIT

Cursor: TypeAlias = Annotated[
    str | None,
    QueryParameter(name="cursor", max_length=64, description="`next_cursor` of the page before."),
]
Limit: TypeAlias = Annotated[
    int, QueryParameter(name="limit", ge=1, le=MAX_LIMIT, description="Items on a page.")
]
