"""Lesson packs over HTTP, as a gateway asks for them."""

import io
from collections.abc import Callable

import httpx2
import pytest

from etude.practice.assigned import LessonAddress
from etude.practice.lesson_errors import LessonPackError
from etude.practice.lesson_packs import PackClip
from etude.practice.pack_source import PackSource

ADDRESS = LessonAddress(app_id="a", task_id="t", lesson_id="unit1")
CLIP = PackClip(clip="01 x.mp3", size_bytes=6, sha256="0" * 64, text=None)
PACK = {
    "app_id": "a",
    "task_id": "t",
    "lesson_id": "unit1",
    "clips": [{"clip": "01.mp3", "size_bytes": 6, "sha256": "0" * 64, "text": "Hello."}],
}


def source(answer: Callable[[httpx2.Request], httpx2.Response]) -> PackSource:
    return PackSource("http://web.test", lambda: "secret", httpx2.MockTransport(answer))


def test_a_pack_is_asked_for_with_the_gateways_token() -> None:
    """By its address; the answer is read as it is typed."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=PACK)

    pack = source(answer).ask(ADDRESS)
    assert (pack.address, pack.clips[0].text) == (ADDRESS, "Hello.")
    (request,) = seen
    assert request.url.path == "/api/v1/gateway/lessons/a/t/unit1"
    assert request.headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b""), (401, b""), (503, b""), (302, b""), (200, b"<html>"), (200, b'{"clips": []}')],
)
def test_any_other_answer_is_named(status: int, body: bytes) -> None:
    """Unknown, refused, away, moved elsewhere, no pack: the reason, and never the token."""
    headers = {"location": "http://evil.test/"}
    with pytest.raises(LessonPackError) as raised:
        source(lambda _: httpx2.Response(status, content=body, headers=headers)).ask(ADDRESS)
    assert "secret" not in str(raised.value)


def test_a_clip_is_written_as_it_comes_and_no_longer_than_told() -> None:
    """Its name is one segment of the path; more bytes than the pack says are refused."""
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path.decode())
        return httpx2.Response(200, content=b"sounds")

    target = io.BytesIO()
    source(answer).fetch(ADDRESS, CLIP, target)
    assert target.getvalue() == b"sounds"
    assert seen == ["/api/v1/gateway/lessons/a/t/unit1/clips/01%20x.mp3"]
    longer = source(lambda _: httpx2.Response(200, content=b"sounds!"))
    with pytest.raises(LessonPackError):
        longer.fetch(ADDRESS, CLIP, io.BytesIO())
    with pytest.raises(LessonPackError):
        source(lambda _: httpx2.Response(404)).fetch(ADDRESS, CLIP, io.BytesIO())


def test_a_gateway_that_stops_does_not_wait_for_the_end() -> None:
    """What is under way ends with its next block."""
    stopping = source(lambda _: httpx2.Response(200, content=b"sounds"))
    stopping.stop()
    with pytest.raises(LessonPackError) as raised:
        stopping.fetch(ADDRESS, CLIP, io.BytesIO())
    assert raised.value.params["reason"] == "stopped"
