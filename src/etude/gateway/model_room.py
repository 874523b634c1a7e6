"""What toys may still ask of a model, and what they have asked until web knows (`docs/llm.md`).

The gateway opens no database: web says how many tokens a toy may use, and that is kept for a
minute. What a toy has used is told afterwards, again at the beginning of each link, until web says
that it is counted. While web is away toys go on with a little, and then with the short fixed
answer. Memory only: a gateway that dies forgets what it had not told.

Nothing but chat and translation waits for this, and a second at most.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from etude.clock import Ids
from etude.gateway.errors import ToyQuotaError
from etude.gateway.link import ChangeHandler, Report
from etude.gateway.link_messages import LinkFrameError
from etude.people.spending.amounts import Tokens
from etude.people.spending.link_records import CALLS, ROOM, Room, RoomWanted, Stage, ToyCall

FRESH_S: Final = 60.0
"""So long counts what web said last; also that nothing was left."""
ASK_S: Final = 1.0
"""A child waits for the answer: longer than web needs, shorter than anybody notices."""
AWAY_TOKENS: Final = 20_000
"""So much all toys of a gateway together use while web counts nothing: some forty answers."""
MOST_WAITING: Final = 500
"""Calls that web has not counted yet; then nothing more is asked until it has."""


class _Left:
    """What web said of a toy last."""

    def __init__(self, tokens: int, at_s: float) -> None:
        self.tokens = tokens
        self.at_s = at_s


class ModelRoom:
    """See the module. Belongs to one event loop; lives as long as the process."""

    def __init__(self, ids: Ids) -> None:
        """Until the link is there (`report`, `linked`), web is away."""
        self._ids = ids
        self._left: dict[str, _Left] = {}
        self._asked: dict[str, asyncio.Event] = {}
        self._open_tokens = 0
        self._waiting: dict[str, tuple[ToyCall, float]] = {}
        self.report: Callable[[str, msgspec.Struct], None] = lambda _kind, _item: None
        """Tells web something; `GatewayLink.report`."""
        self.linked: Callable[[], bool] = lambda: False
        """Whether web hears it."""

    def handlers(self) -> dict[str, ChangeHandler]:
        """Return what takes the kind `ROOM` that comes down the link."""
        return {ROOM: ChangeHandler(replace=self._told, apply=self._told)}

    def standing(self) -> Sequence[Report]:
        """Return the calls that web has not counted yet, for the beginning of a link."""
        return [(CALLS, self._aged(call, at_s)) for call, at_s in self._waiting.values()]

    async def take(self, device_id: str, model: str, most: Tokens) -> None:
        """Take what a question can use at most; `used` follows, whatever becomes of it.

        Raises:
            ToyQuotaError: it is not to be asked.
        """
        if not await self._may(device_id, model, most.all):
            raise ToyQuotaError
        self._open_tokens += most.all

    async def _may(self, device_id: str, model: str, tokens: int) -> bool:
        if len(self._waiting) >= MOST_WAITING:
            return False
        left = self._left.get(device_id)
        if left is None or self._now_s() - left.at_s > FRESH_S:
            await self._ask(device_id, model)
            left = self._left.get(device_id)
        if left is not None and left.tokens < tokens:
            return False
        if left is None or self._now_s() - left.at_s > FRESH_S + ASK_S:
            return self._uncounted() + self._open_tokens + tokens <= AWAY_TOKENS
        left.tokens -= tokens
        return True

    def used(
        self,
        device_id: str,
        stage: Stage,
        model: str,
        most: Tokens,
        used: Tokens,
        *,
        estimated: bool,
        error_code: str | None = None,
    ) -> None:
        """Note what a question has used of what it took, and tell web; returns at once."""
        self._open_tokens -= most.all
        call = ToyCall(
            call_id=self._ids.new(),
            device_id=device_id,
            stage=stage,
            model=model,
            prompt_tokens=used.prompt,
            completion_tokens=used.completion,
            estimated=estimated,
            error_code=error_code,
        )
        self._waiting[call.call_id] = (call, self._now_s())
        self.report(CALLS, call)

    async def _ask(self, device_id: str, model: str) -> None:
        """Ask web what is left for a toy, and wait a moment for the answer."""
        if not self.linked():
            return
        answered = self._asked.setdefault(device_id, asyncio.Event())
        self.report(ROOM, RoomWanted(device_id=device_id, model=model))
        try:
            async with asyncio.timeout(ASK_S):
                await answered.wait()
        except TimeoutError:
            return
        finally:
            self._asked.pop(device_id, None)

    async def _told(self, items: Sequence[msgspec.Raw]) -> None:
        """Take what web says is left, less what it has not counted yet."""
        try:
            rooms = [msgspec.json.decode(item, type=Room) for item in items]
        except msgspec.DecodeError as error:
            # Its words name members and types, never their values.
            raise LinkFrameError(reason=str(error)[:200]) from error
        for room in rooms:
            for call_id in room.noted:
                self._waiting.pop(call_id, None)
            uncounted = self._uncounted(room.device_id)
            self._left[room.device_id] = _Left(room.tokens - uncounted, self._now_s())
            answered = self._asked.get(room.device_id)
            if answered is not None:
                answered.set()
        stale_s = self._now_s() - 2 * FRESH_S
        for device_id in [one for one, left in self._left.items() if left.at_s < stale_s]:
            if self._left[device_id].tokens > 0:  # that nothing was left is worth knowing
                del self._left[device_id]

    def _uncounted(self, device_id: str | None = None) -> int:
        return sum(
            call.prompt_tokens + call.completion_tokens
            for call, _ in self._waiting.values()
            if device_id in {None, call.device_id}
        )

    def _aged(self, call: ToyCall, at_s: float) -> ToyCall:
        return msgspec.structs.replace(call, ago_ms=int((self._now_s() - at_s) * 1000))

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
