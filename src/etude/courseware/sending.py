"""Publishing a course at another server: everything is frozen here, sent at once, and compared.

What the server answers is compared with what was frozen, byte for byte, before the receipt is
noted: until then nothing counts as published. Sent again after a cut or a kill, the same content is
the same version there.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec
import structlog

from etude.clock import Clock, to_us
from etude.courseware import receipts
from etude.courseware.course_manifest import (
    CourseManifest,
    PinnedModule,
    course_manifest_bytes,
    hash_of,
)
from etude.courseware.entries import enter
from etude.courseware.gates import CourseSource, Passed, check_course
from etude.courseware.publish_server import PublishServer
from etude.courseware.publish_token import PublishToken
from etude.courseware.publishing import (
    Allowed,
    Readiness,
    always_allowed,
    checked,
    readiness_of,
    receipt_of,
    require_unchanged,
    token_missing,
)
from etude.courseware.registering import MANIFEST_SCHEMA, Published
from etude.courseware.remote_errors import PublishReceiptMismatchError
from etude.courseware.sent_body import SentBody
from etude.courseware.submission import Answer, read_answer, submission_of
from etude.errors import EtudeError
from etude.files import crash_point
from etude.people.records import Actor, Principal
from etude.store.engine import Database

_STOP_S: Final = 2.0
_RECEIPT: Final = "receipt"
_MANIFEST_HASH: Final = "manifestHash"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

log = structlog.get_logger("etude.courseware")


class RemotePublisher:
    """Publishes courses from a folder of classrooms at one server. Lives as long as the process."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        server: str,
        classrooms: Path,
        token: str,
        wire: httpx2.BaseTransport | None = None,
    ) -> None:
        """Publish at `server`, the address in the settings.

        Args:
            database: where receipts are kept.
            clock: for their times.
            server: its base address.
            classrooms: the folder of `etude.classroom.library`.
            token: of publishing, as `PublishToken` reads it.
            wire: what stands in for the network in a test.
        """
        self._database = database
        self._clock = clock
        self._classrooms = classrooms
        self._token = PublishToken(token)
        self._server = PublishServer(server, self._token, wire)

    @property
    def target(self) -> str:
        """The server's address."""
        return self._server.address

    def require_token(self) -> None:
        """Raise `PublishTokenMissingError` where nothing can be published at all."""
        if not self._token.usable:
            raise token_missing()

    async def readiness(self, course: CourseSource) -> Readiness:
        """Return whether the course could be published now: the gates here, and the server."""
        if not self._token.usable:
            return Readiness(blockers=(token_missing(),), needs_model={})
        found, away = await asyncio.gather(
            asyncio.to_thread(check_course, course, self._classrooms),
            asyncio.to_thread(self._reason_against),
        )
        ready = readiness_of(course, found)
        return msgspec.structs.replace(
            ready, blockers=(*away, *ready.blockers), unprotected=_is_unprotected(self.target)
        )

    async def publish(
        self, course: CourseSource, by: Actor, allowed: Allowed = always_allowed
    ) -> Published:
        """Publish a course at the server.

        Args:
            course: which.
            by: who publishes it; entered in the audit log with the receipt.
            allowed: asked before anything is sent; a publication that is cancelled after that
                ends before its end is sent, or it is published.

        Raises:
            PublishTokenMissingError: there is no token here.
            PublishRefusedError: gates are closed, here or there; every failure is a part.
            SourceChangedError: a classroom was changed meanwhile; nothing is published.
            PublishServerError: its subclasses say what is wrong with the server or its answer.
        """
        self.require_token()
        passed = await checked(course, self._classrooms)
        bundles = [one.frozen for one in passed]
        body = SentBody(submission_of(course, passed), bundles, lambda: require_unchanged(passed))
        await asyncio.to_thread(self._server.ask_first, body.size)
        async with self._database.transaction() as work:
            await allowed(work)
        crash_point("courseware.publish.sending")
        answer = self._read(await self._sent(body))
        published = self._compared(course, passed, body.sha256, answer)
        crash_point("courseware.publish.answered")
        receipt = receipt_of(published, passed, self.target, self._clock)
        async with self._database.transaction() as work:
            # Not by `new`: after a lost answer the server calls what was published here an old one.
            if not await receipts.is_known(work.connection, receipt):
                course_id, version, now = receipt.course_id, receipt.version, receipt.received_at
                await enter(work, "course.published", course_id, version, actor=by, now=now)
            await receipts.keep(work, receipt)
            crash_point("courseware.receipt.noted")
        log.info(
            "a course was published at its server",
            action="courseware.published_there",
            course=course.course_id,
            version=published.manifest.version,
            new=published.new,
        )
        return published

    async def withdraw(
        self, course_id: str, version: int, reason: str, *, actor: Actor | Principal
    ) -> None:
        """Take a version of a course away from everybody, at the server; twice is once.

        Raises:
            PublishTokenMissingError: there is no token here.
            CourseUnpublishedError: the server has no such version.
            PublishServerError: its subclasses say what is wrong with the server.
        """
        self.require_token()
        await asyncio.to_thread(self._server.withdraw, course_id, version, reason)
        now = self._clock.now()
        async with self._database.transaction() as work:
            await enter(work, "course.withdrawn", course_id, version, actor=actor, now=now)
            await receipts.note_withdrawn(work, course_id, self.target, version, to_us(now))
            crash_point("courseware.withdrawal.noted")

    def _reason_against(self) -> tuple[EtudeError, ...]:
        try:
            self._server.ask_first()
        except EtudeError as error:
            return (error,)
        return ()

    async def _sent(self, body: SentBody) -> bytes:
        """Send everything in a thread; cancelled, it stops within a block."""
        doing = asyncio.ensure_future(asyncio.to_thread(self._server.submit, body))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            body.stop()
            # It was broken off: nobody waits for why, however late a dead connection says it.
            doing.add_done_callback(lambda one: one.cancelled() or one.exception())
            await asyncio.wait([doing], timeout=_STOP_S)
            raise

    def _read(self, content: bytes) -> Answer:
        try:
            return read_answer(content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._mismatched(_RECEIPT, type(error).__name__) from error

    def _compared(
        self, course: CourseSource, passed: Sequence[Passed], sent: Sequence[str], answer: Answer
    ) -> Published:
        """Return what is published there, if it is exactly what was sent."""
        for part, ours, found in _pairs(course, passed, sent, answer):
            if ours != found:
                raise self._mismatched(part, found)
        manifest = _manifest(course, passed, answer)
        if hash_of(course_manifest_bytes(manifest)) != answer.manifest_hash:
            raise self._mismatched(_MANIFEST_HASH, answer.manifest_hash)
        return Published(manifest=manifest, manifest_hash=answer.manifest_hash, new=answer.new)

    def _mismatched(self, part: str, found: str | int) -> PublishReceiptMismatchError:
        return PublishReceiptMismatchError(server=self.target, part=part, found=str(found)[:100])


def _pairs(
    course: CourseSource, passed: Sequence[Passed], sent: Sequence[str], answer: Answer
) -> Iterator[tuple[str, str | int, str | int]]:
    """Yield what was sent and what the server says, part by part."""
    yield "courseId", course.course_id, answer.course_id
    yield "modules", len(passed), len(answer.modules)
    for index, (one, sha256, found) in enumerate(zip(passed, sent, answer.modules, strict=True)):
        place = f"modules[{index}]"
        yield f"{place}.index", index, found.index
        yield f"{place}.coursewareId", one.source.module_id, found.courseware_id
        yield f"{place}.contentHash", one.frozen.content_hash, found.content_hash
        yield f"{place}.bundleSha256", sha256, found.bundle_sha256


def _manifest(course: CourseSource, passed: Sequence[Passed], answer: Answer) -> CourseManifest:
    """Return the manifest that the server must have written."""
    modules = tuple(
        PinnedModule(
            index=index,
            title=one.source.title,
            description=one.source.description,
            courseware_id=one.source.module_id,
            courseware_version=found.courseware_version,
            content_hash=one.frozen.content_hash,
        )
        for index, (one, found) in enumerate(zip(passed, answer.modules, strict=True))
    )
    return CourseManifest(
        schema_version=MANIFEST_SCHEMA,
        course_id=course.course_id,
        version=answer.manifest_version,
        title=course.title,
        modules=modules,
    )


def _is_unprotected(server: str) -> bool:
    """Whether the token would cross a network in the clear."""
    parts = urlsplit(server)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK
