"""One link from the web side: what the gateway tells is stored, what is due for it is sent."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from etude.clock import Clock
from etude.errors import ForbiddenError, InvalidError, UnauthenticatedError
from etude.gateway import link_messages as wire
from etude.gateway.link_messages import Answer, Deliver, Devices, Hello, Report
from etude.people import changes, commands, presence
from etude.people.changes import ChangeSource, Mark, ReportSink
from etude.people.commands import Command, CommandState
from etude.people.presence import LEASE, Link, Online
from etude.store import Database
from etude.store.errors import StoreUnavailable
from etude.web.sockets import Socket, SocketGoneError, SocketSlowError

POLL_S: Final = 0.25
RENEW_S: Final = LEASE.total_seconds() / 3
HELLO_S: Final = 10.0
TIDY_S: Final = 3600.0
_SETTLED_ORDER: Final = timedelta(minutes=2)
"""Behind this, no transaction that marks a change is still open (the store's own limit is 30 s)."""

log = structlog.get_logger("etude.web")


class LinkEnded(Exception):  # noqa: N818 - how every link ends, most of them without an error
    """The link is over; `close_code` is RFC 6455's or our own."""

    def __init__(self, reason: str, close_code: int) -> None:
        """Keep both."""
        super().__init__(reason)
        self.reason = reason
        self.close_code = close_code


GONE: Final = ("gone", 1000)
SLOW: Final = ("slow", 1008)
NO_HELLO: Final = ("no hello", 1008)
SUPERSEDED: Final = ("superseded by a newer link of this gateway", 4001)
REVOKED: Final = ("token not valid any more", 1008)
STALE: Final = ("stale", 1013)
AWAY: Final = ("database away", 1013)


class Feed:
    """A link while it lasts. `run` ends with `LinkEnded`."""

    def __init__(
        self,
        socket: Socket,
        database: Database,
        clock: Clock,
        *,
        link_id: str,
        sources: Mapping[str, ChangeSource],
        sinks: Mapping[str, ReportSink],
        check: Callable[[], Awaitable[object]],
    ) -> None:
        """Bind an accepted socket; the gateway's hello has not come yet.

        `check` is asked every few seconds and raises once the gateway's token is not valid.
        """
        self._socket = socket
        self._database = database
        self._clock = clock
        self._link_id = link_id
        self._sources = sources
        self._sinks = sinks
        self._check = check
        self._wake = asyncio.Event()
        self._in_flight: dict[str, float] = {}
        self._seen: dict[int, datetime] = {}
        self._seen_to = 0
        self.gateway_id = ""

    def wake(self) -> None:
        """Look into the database now."""
        self._wake.set()

    async def run(self) -> None:
        """Serve the link to its end, which is always an exception: `LinkEnded`."""
        with _ends():
            link = await self._greet()
            try:
                await self._send([wire.Welcome(link_id=link.link_id)])
                await self._send_everything()
                await _first_to_fail(self._listen(link), self._feed(link))
            finally:
                with contextlib.suppress(StoreUnavailable):  # the lease ends by itself
                    async with self._database.transaction() as work:
                        await presence.close_link(work, link)

    async def _greet(self) -> Link:
        try:
            async with asyncio.timeout(HELLO_S):
                hello = wire.decode_from_gateway(await self._socket.read())
        except TimeoutError:
            raise LinkEnded(*NO_HELLO) from None
        if not isinstance(hello, Hello):
            raise LinkEnded(*NO_HELLO)
        self.gateway_id = hello.gateway_id
        link = Link(
            gateway_id=hello.gateway_id,
            link_id=self._link_id,
            reaches_offline=hello.reaches_offline,
        )
        async with self._database.transaction() as work:
            await presence.open_link(work, link, self._clock.now())
        log.info("link opened", action="gateway_link.opened", gateway_id=hello.gateway_id)
        return link

    async def _send(self, messages: Iterable[wire.FromWeb]) -> None:
        for message in messages:
            await self._socket.write(wire.encode(message), wire.SLOW_S)

    # What the gateway tells.

    async def _listen(self, link: Link) -> None:
        while True:
            message = wire.decode_from_gateway(await self._socket.read())
            match message:
                case Devices():
                    await self._note_devices(link, message)
                case Answer():
                    await self._note_answer(message)
                case Report():
                    await self._note_report(link, message)
                case Hello():
                    raise wire.LinkFrameError(reason="a second hello")

    async def _note_devices(self, link: Link, told: Devices) -> None:
        now = self._clock.now()
        online = [
            Online(
                device_id=each.device_id,
                connection_id=each.connection_id,
                since=now - timedelta(milliseconds=each.age_ms),
            )
            for each in told.connected
        ]
        async with self._database.transaction() as work:
            if online:
                await presence.note_online(work, link, online, now)
            if told.gone:
                gone = [(each.device_id, each.connection_id) for each in told.gone]
                await presence.note_offline(work, link, gone)
            if told.all_told:
                await presence.forget_untold(work, link)
        self.wake()

    async def _note_answer(self, answer: Answer) -> None:
        now = self._clock.now()
        async with self._database.transaction() as work:
            if answer.outcome in {"offline", "timeout"}:
                await commands.put_back(work, answer.msg_id, now)
            else:
                await commands.settle(
                    work,
                    answer.msg_id,
                    CommandState(answer.outcome),
                    code=answer.code,
                    message=answer.message,
                    now=now,
                )
        if self._in_flight.pop(answer.msg_id, None) is not None:
            self.wake()

    async def _note_report(self, link: Link, report: Report) -> None:
        sink = self._sinks.get(report.kind)
        if sink is None:  # a newer gateway
            return
        now = self._clock.now()
        async with self._database.transaction() as work:
            replies = await sink.store(work, link.gateway_id, report.items, now)
        for kind, items in replies:
            await self._send(wire.changed(kind, items))

    # What is due for the gateway.

    async def _feed(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        renew_at = tidy_at = looked_at = loop.time()
        while True:
            if loop.time() - looked_at > (changes.KEPT - _SETTLED_ORDER).total_seconds():
                raise LinkEnded(*STALE)
            looked_at = loop.time()
            self._wake.clear()
            await self._look(link, looked_at)
            if loop.time() >= renew_at:
                tidy = loop.time() >= tidy_at
                await self._renew(link, tidy=tidy)
                renew_at = loop.time() + RENEW_S
                tidy_at = loop.time() + TIDY_S if tidy else tidy_at
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._wake.wait()

    async def _look(self, link: Link, at_s: float) -> None:
        late_s = at_s - commands.ANSWER_WITHIN.total_seconds()
        self._in_flight = {key: sent for key, sent in self._in_flight.items() if sent > late_s}
        room = wire.MAX_IN_FLIGHT - len(self._in_flight)
        now = self._clock.now()
        async with self._database.read() as connection:
            if not await presence.holds_lease(connection, link):
                raise LinkEnded(*SUPERSEDED)
            due = room > 0 and await commands.any_due(connection, link.gateway_id, now, LEASE)
            changed = await self._changed(connection, now)
        await self._send(changed)
        if due:
            await self._deliver(link, room, at_s)

    async def _deliver(self, link: Link, room: int, at_s: float) -> None:
        now = self._clock.now()
        async with self._database.transaction() as work:
            due = await commands.claim_due(work, link.gateway_id, now, LEASE, room)
        for command in due:
            self._in_flight[command.msg_id] = at_s
        await self._send(_deliver(command, now) for command in due)

    async def _renew(self, link: Link, *, tidy: bool) -> None:
        try:
            await self._check()
        except (UnauthenticatedError, ForbiddenError):
            raise LinkEnded(*REVOKED) from None
        now = self._clock.now()
        async with self._database.transaction() as work:
            if not await presence.renew_link(work, link, now):
                raise LinkEnded(*SUPERSEDED)
            if tidy:
                await changes.forget_marks(work, now)
                await commands.forget_old(work, now)

    async def _send_everything(self) -> None:
        async with self._database.read() as connection:
            for mark in await changes.marks(connection):
                self._seen[mark.change_key] = mark.at
            everything = [
                (source.kind, await source.everything(connection))
                for source in self._sources.values()
            ]
        for kind, items in everything:
            await self._send(wire.snapshot(kind, items))

    async def _changed(self, connection: AsyncConnection, now: datetime) -> list[wire.Changed]:
        marks = await changes.marks(connection, after=self._seen_to)
        fresh = [mark for mark in marks if mark.change_key not in self._seen]
        found: list[wire.Changed] = []
        for source, keys in self._by_source(fresh):
            found += wire.changed(source.kind, await source.about(connection, keys))
        self._seen.update((mark.change_key, mark.at) for mark in fresh)
        old = [key for key, at in self._seen.items() if at < now - _SETTLED_ORDER]
        for key in old:
            del self._seen[key]
        self._seen_to = max([self._seen_to, *old])
        return found

    def _by_source(self, marks: Iterable[Mark]) -> Iterable[tuple[ChangeSource, set[int]]]:
        keys: dict[str, set[int]] = defaultdict(set)
        for mark in marks:
            keys[mark.kind].add(mark.subject_key)
        return [(self._sources[kind], of) for kind, of in keys.items() if kind in self._sources]


def _deliver(command: Command, now: datetime) -> Deliver:
    return Deliver(
        msg_id=command.msg_id,
        device_id=command.device_id,
        action=command.action,
        payload=msgspec.Raw(command.payload.encode()),
        within_ms=max(0, (command.expires_at - now) // timedelta(milliseconds=1)),
    )


@contextlib.contextmanager
def _ends() -> Iterator[None]:
    """Turn what ends a link into `LinkEnded`."""
    try:
        yield
    except SocketGoneError:
        raise LinkEnded(*GONE) from None
    except SocketSlowError:
        raise LinkEnded(*SLOW) from None
    except InvalidError as error:
        reason = f"{error.code}: {error.params.get('reason', '')}"
        raise LinkEnded(reason, 1008) from error
    except StoreUnavailable as error:
        log.warning("link cut", action="gateway_link.store_away", code=error.code)
        raise LinkEnded(*AWAY) from error


async def _first_to_fail(*parts: Coroutine[Any, Any, None]) -> None:
    """Run endless parts until one fails; cancel the others and raise its error."""
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
