"""The registry over HTTP, as a gateway asks it."""

import io
from collections.abc import Callable

import httpx2
import pytest

from etude.courseware.errors import DownloadFailedError, ManifestWithdrawnError
from etude.courseware.loading import Registered
from etude.practice.courseware_source import CoursewareSource

HASH = "sha256:" + "a" * 64
REGISTERED = Registered(courseware_id="cw-1", version=2, content_hash=HASH)


def source(answer: Callable[[httpx2.Request], httpx2.Response]) -> CoursewareSource:
    return CoursewareSource("http://web.test/etude", httpx2.MockTransport(answer))


def test_the_registry_is_asked_for_exactly_this_version() -> None:
    """One request without a token; what else the answer holds is passed over."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        view = {"coursewareId": "cw-1", "version": 2, "contentHash": HASH, "title": "Tides"}
        return httpx2.Response(200, json=view)

    assert source(answer).ask("cw-1", 2) == REGISTERED
    (request,) = seen
    assert str(request.url) == "http://web.test/etude/api/coursewares/cw-1?version=2"
    assert "authorization" not in request.headers


def test_an_id_is_no_path() -> None:
    """Slashes and dots of a pin stay within its segment."""
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path.decode())
        return httpx2.Response(404)

    assert source(answer).ask("../../x?y", 1) is None
    assert seen == ["/etude/api/coursewares/..%2F..%2Fx%3Fy?version=1"]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (410, b"", ManifestWithdrawnError),
        (500, b"", DownloadFailedError),
        (302, b"", DownloadFailedError),
        (200, b"<html>", DownloadFailedError),
        (200, b'{"coursewareId": 1}', DownloadFailedError),
    ],
)
def test_any_other_answer_is_named(status: int, body: bytes, error: type[Exception]) -> None:
    """Withdrawn, broken, moved elsewhere (not followed), not the registry at all."""
    headers = {"location": "http://evil.test/"}
    with pytest.raises(error):
        source(lambda _: httpx2.Response(status, content=body, headers=headers)).ask("cw-1", 2)


def test_a_bundle_is_written_as_it_comes() -> None:
    """Every byte, from the path of the version."""
    target = io.BytesIO()

    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.url.path == "/etude/api/coursewares/cw-1/bundles/2/download"
        return httpx2.Response(200, content=b"bundle" * 1000)

    source(answer).download(REGISTERED, target)
    assert target.getvalue() == b"bundle" * 1000


def test_a_refused_bundle_writes_nothing() -> None:
    """What comes with an error is no part of a bundle."""
    target = io.BytesIO()
    with pytest.raises(DownloadFailedError) as raised:
        source(lambda _: httpx2.Response(503, content=b"later")).download(REGISTERED, target)
    assert (raised.value.params["reason"], target.getvalue()) == ("HTTP 503", b"")


def test_a_cut_connection_is_named() -> None:
    """Neither call lets an error of the network library out."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadError(message="")

    with pytest.raises(DownloadFailedError):
        source(answer).ask("cw-1", 2)
    with pytest.raises(DownloadFailedError):
        source(answer).download(REGISTERED, io.BytesIO())


def test_a_gateway_that_stops_does_not_wait_for_the_end() -> None:
    """What is under way ends with its next block."""
    stopping = source(lambda _: httpx2.Response(200, content=b"bundle"))
    stopping.stop()
    with pytest.raises(DownloadFailedError) as raised:
        stopping.download(REGISTERED, io.BytesIO())
    assert raised.value.params["reason"] == "stopped"
