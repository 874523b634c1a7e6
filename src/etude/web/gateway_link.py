"""The web side of the links to gateways (`docs/rules.md 44`).

Any web process may hold the link of any gateway: what they share is in the database, which each
link looks at several times a second. A link that is slow, silent, or sends what it may not, is cut;
the gateway comes again.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

from etude.clock import Clock, Ids
from etude.people.changes import ChangeSource, ReportSink
from etude.store import Database
from etude.store.failures import where
from etude.web.gateway_feed import Feed, LinkEnded
from etude.web.sockets import Socket

RESTARTING: Final = 1012
FAILED: Final = 1011

log = structlog.get_logger("etude.web")


class GatewayLinks:
    """The links that this process holds. One per process, one event loop.

    >>> links.wake()  # after the commit of a command: it is sent now, not a moment later
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        ids: Ids,
        *,
        sources: Iterable[ChangeSource] = (),
        sinks: Iterable[ReportSink] = (),
    ) -> None:
        """Serve links over `database`: `sources` go down to gateways, `sinks` take what comes up.

        There is one source at most of a kind, and one sink.
        """
        self._database = database
        self._clock = clock
        self._ids = ids
        self._sources = {source.kind: source for source in sources}
        self._sinks = {sink.kind: sink for sink in sinks}
        self._feeds: set[Feed] = set()

    def wake(self) -> None:
        """Let every link of this process look into the database at once."""
        for feed in self._feeds:
            feed.wake()

    async def hold(self, socket: Socket, check: Callable[[], Awaitable[object]]) -> None:
        """Hold one link until it ends, whoever ends it; `check` raises once it may be no more."""
        feed = Feed(
            socket,
            self._database,
            self._clock,
            link_id=self._ids.new(),
            sources=self._sources,
            sinks=self._sinks,
            check=check,
        )
        self._feeds.add(feed)
        try:
            await feed.run()
        except LinkEnded as ended:
            log.info(
                "link ended",
                action="gateway_link.ended",
                gateway_id=feed.gateway_id,
                reason=ended.reason,
            )
            await _close(socket, ended.close_code, ended.reason)
        except asyncio.CancelledError:
            await _close(socket, RESTARTING, "stopping")
            raise
        except Exception as failure:  # noqa: BLE001 - the border: its text may quote what came up
            log.error(  # noqa: TRY400 - as said
                "link failed",
                action="gateway_link.failed",
                gateway_id=feed.gateway_id,
                error=type(failure).__qualname__,
                where=where(failure),
            )
            await _close(socket, FAILED, "failed")
        finally:
            self._feeds.discard(feed)


async def _close(socket: Socket, code: int, reason: str) -> None:
    with contextlib.suppress(Exception):  # it may be gone already, in as many ways as servers exist
        await socket.close(code, reason)
