"""Many callers, one trip to the database: group commit, and the same for look-ups."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Gathering(Generic[Item, Outcome]):
    """Carries out what callers ask for in groups. Lives as long as the process, on one event loop.

    What is asked for while a group is carried out forms the next group, so a caller who comes alone
    waits for nobody, and a hundred who come at once cost one transaction. Each has its own outcome;
    if a group fails as a whole, every item of it is carried out again alone, so that no one suffers
    from a neighbour.
    """

    def __init__(
        self,
        carry_out: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]],
        *,
        limit: int,
        weigh: Callable[[Item], int] = lambda _: 1,
    ) -> None:
        """Gather for `carry_out`, which returns one outcome (or the error to raise) an item.

        A group weighs at most `limit`, unless its only item weighs more.
        """
        self._carry_out = carry_out
        self._limit = limit
        self._weigh = weigh
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, item: Item) -> Outcome:
        """Return the outcome of `item`, or raise its error.

        Once asked for, an item is carried out even if its caller is cancelled meanwhile.
        """
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await asyncio.shield(outcome)

    async def _work(self) -> None:
        while self._waiting:
            group = self._next_group()
            try:
                outcomes = await self._carried_out([item for item, _ in group])
            except BaseException as end:  # the process is stopping: nobody may wait for ever
                self._give_up(group, end)
                raise
            for (_, future), outcome in zip(group, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                    future.exception()  # a caller who is gone leaves no "never retrieved" behind
                else:
                    future.set_result(outcome)

    def _give_up(
        self, group: Sequence[tuple[Item, asyncio.Future[Outcome]]], end: BaseException
    ) -> None:
        for _, future in (*group, *self._waiting):
            if isinstance(end, asyncio.CancelledError):
                future.cancel()
            else:
                future.set_exception(end)
        self._waiting.clear()

    def _next_group(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        group = [self._waiting.popleft()]
        weight = self._weigh(group[0][0])
        while self._waiting and weight + self._weigh(self._waiting[0][0]) <= self._limit:
            group.append(self._waiting.popleft())
            weight += self._weigh(group[-1][0])
        return group

    async def _carried_out(self, items: Sequence[Item]) -> Sequence[Outcome | Exception]:
        try:
            return await self._carry_out(items)
        except Exception as error:  # noqa: BLE001 - a border: the error becomes the callers' own
            if len(items) == 1:
                return [error]
        return [(await self._carried_out([item]))[0] for item in items]
