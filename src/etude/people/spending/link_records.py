"""What goes over a gateway's link about models: calls that toys made, and what is left for them."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

CALLS: Final = "model_calls"
ROOM: Final = "model_room"
LEASE_TOKENS: Final = 20_000
"""So much at most a gateway is told that a toy may use: some forty answers. What several toys have
been told at the same moment is what a limit can be exceeded by."""

_Count = Annotated[int, Meta(ge=0, le=10_000_000)]
_DeviceId = Annotated[str, Meta(min_length=1, max_length=128)]
_Model = Annotated[str, Meta(min_length=1, max_length=200)]
Stage = Literal["chat", "translate"]


class ToyCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was made for a toy; nothing of what was said.

    Attributes:
        call_id: told again, it is counted once.
        ago_ms: how long ago it was made: clocks may differ.
    """

    call_id: Annotated[str, Meta(min_length=1, max_length=36)]
    device_id: _DeviceId
    stage: Stage
    model: _Model
    prompt_tokens: _Count
    completion_tokens: _Count
    estimated: bool
    error_code: Annotated[str, Meta(max_length=100)] | None = None
    ago_ms: Annotated[int, Meta(ge=0)] = 0


class RoomWanted(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway asks how much a toy may use of a model."""

    device_id: _DeviceId
    model: _Model


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens a toy may use now; `noted` are the calls that are counted in it by now."""

    device_id: str
    tokens: int
    noted: tuple[str, ...] = ()
