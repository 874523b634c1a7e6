"""The body of a publication, made while it is sent: no bundle is ever held in memory."""

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from etude.courseware.freezing import Frozen
from etude.courseware.remote_errors import PublishCancelledError
from etude.courseware.submission import COURSE_PART, Submission, bundle_part
from etude.net import Streamed

_END: Final = b"\r\n"


class SentBody:
    """One publication as `multipart/form-data` (RFC 7578). It is sent once."""

    def __init__(
        self, submission: Submission, bundles: Sequence[Frozen], before_end: Callable[[], None]
    ) -> None:
        """Describe the body.

        Args:
            submission: what goes with the bundles.
            bundles: in the order of the modules.
            before_end: called when all but the end was sent; what it raises keeps the other side
                from ever seeing a whole body.
        """
        self._boundary = secrets.token_hex(24)
        self._bundles = bundles
        self._before_end = before_end
        self._stop = threading.Event()
        document = msgspec.json.encode(submission)
        self._course = self._head(COURSE_PART, "application/json") + document + _END
        heads = [self._head(bundle_part(at), "application/zip") for at in range(len(bundles))]
        self._heads = heads
        self._tail = f"--{self._boundary}--".encode() + _END
        self.sha256: list[str] = []
        """Of each bundle that was sent whole, over its bytes as they went."""

    @property
    def content_type(self) -> str:
        """What the body is."""
        return f"multipart/form-data; boundary={self._boundary}"

    @property
    def size(self) -> int:
        """How many bytes it has."""
        bundles = sum(
            len(head) + bundle.size + len(_END)
            for head, bundle in zip(self._heads, self._bundles, strict=True)
        )
        return len(self._course) + bundles + len(self._tail)

    def stop(self) -> None:
        """Break off at the next block; from any thread."""
        self._stop.set()

    def streamed(self) -> Streamed:
        """Return what is sent.

        Its blocks raise `SourceChangedError` if a classroom was changed meanwhile, and
        `PublishCancelledError` after `stop`.
        """
        return Streamed(size=self.size, blocks=self._blocks())

    def _head(self, name: str, kind: str) -> bytes:
        lines = (
            f"--{self._boundary}",
            f'Content-Disposition: form-data; name="{name}"; filename="{name}"',
            f"Content-Type: {kind}",
        )
        return "".join(f"{line}\r\n" for line in lines).encode() + _END

    def _blocks(self) -> Iterator[bytes]:
        yield self._course
        for head, bundle in zip(self._heads, self._bundles, strict=True):
            yield head
            digest = hashlib.sha256()
            for block in bundle.blocks():
                if self._stop.is_set():
                    raise PublishCancelledError
                digest.update(block)
                yield block
            self.sha256.append(digest.hexdigest())
            yield _END
        self._before_end()
        if self._stop.is_set():
            raise PublishCancelledError
        yield self._tail
