"""Recognition and synthesis by a server, against one that answers as told."""

import io
import json
from collections.abc import Callable

import httpx2
import numpy as np
import pytest
import soundfile

from etude.speech.audio import Pcm
from etude.speech.errors import SpeechServerError, SpeechTextError
from etude.speech.loudness import measure
from etude.speech.recognise_http import HttpRecogniser, multipart, to_wav
from etude.speech.speech_server import ServerOptions
from etude.speech.synthesise import TARGET_LUFS
from etude.speech.synthesise_http import HttpSynthesiser

OPTIONS = ServerOptions(
    url="http://speech.test/v1", model="a-model", voice="a-voice", api_key="a-key"
)
SECOND = Pcm(sample_rate=24_000, samples=bytes(48_000))


def answering(
    status: int = 200, content: bytes = b"", seen: list[httpx2.Request] | None = None
) -> httpx2.MockTransport:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        return httpx2.Response(status, content=content)

    return httpx2.MockTransport(answer)


def cut(error: type[Exception]) -> httpx2.MockTransport:
    def answer(_: httpx2.Request) -> httpx2.Response:
        raise error(error.__name__)

    return httpx2.MockTransport(answer)


def spoken(rate: int = 22_050, channels: int = 1) -> bytes:
    file = io.BytesIO()
    wave = 0.02 * np.sin(np.arange(rate) * 0.1)
    soundfile.write(file, np.repeat(wave[:, None], channels, axis=1), rate, format="WAV")
    return file.getvalue()


def test_a_recording_is_sent_as_the_protocol_says() -> None:
    """A form with model, language and a WAV at 16 kHz; the key as a bearer token."""
    seen: list[httpx2.Request] = []
    wire = answering(content=b'{"text": " Hello \\n there "}', seen=seen)
    heard = HttpRecogniser(OPTIONS, wire=wire).recognise(
        SECOND, language="zh-CN", expected_text="the answer"
    )
    (request,) = seen
    assert str(request.url) == "http://speech.test/v1/audio/transcriptions"
    assert request.headers["Authorization"] == "Bearer a-key"
    assert b'name="model"\r\n\r\na-model\r\n' in request.content
    assert b'name="language"\r\n\r\nzh\r\n' in request.content
    assert b"the answer" not in request.content
    wav = request.content[request.content.index(b"RIFF") :]
    assert int.from_bytes(wav[24:28], "little") == 16_000
    assert (heard.text, heard.language, heard.model) == ("Hello there", "zh-CN", "a-model")
    assert heard.expected_tokens is None


def test_a_text_is_asked_for_as_the_protocol_says() -> None:
    """JSON with model, voice, input and speed; the answer is levelled."""
    seen: list[httpx2.Request] = []
    wire = answering(content=spoken(channels=2), seen=seen)
    speech = HttpSynthesiser(OPTIONS, wire=wire).synthesise("你好", language="zh", rate=0.8)
    assert str(seen[0].url) == "http://speech.test/v1/audio/speech"
    assert json.loads(seen[0].content) == {
        "model": "a-model",
        "voice": "a-voice",
        "input": "你好",
        "response_format": "wav",
        "speed": 0.8,
    }
    assert speech.sound.sample_rate == 22_050
    assert speech.sound.duration_ms == 1000
    assert measure(speech.sound).integrated_lufs == pytest.approx(TARGET_LUFS, abs=0.3)


def recognised(wire: httpx2.BaseTransport) -> object:
    return HttpRecogniser(OPTIONS, wire=wire).recognise(SECOND, language="en")


def synthesised(wire: httpx2.BaseTransport) -> object:
    return HttpSynthesiser(OPTIONS, wire=wire).synthesise("Hi", language="en")


@pytest.mark.parametrize("ask", [recognised, synthesised])
@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (answering(500, b"the child said"), "answer"),
        (answering(401, b"a-key"), "answer"),
        (answering(302), "answer"),
        (answering(200, b"neither JSON nor sound"), "answer"),
        (answering(200, b"{}"), "answer"),
        (answering(200, b""), "answer"),
        (cut(httpx2.ConnectError), "connect"),
        (cut(httpx2.ReadTimeout), "timeout"),
        (cut(httpx2.RemoteProtocolError), "cut"),
    ],
)
def test_whatever_goes_wrong_is_one_error(
    ask: Callable[[httpx2.BaseTransport], object], wire: httpx2.BaseTransport, kind: str
) -> None:
    """Each fault is a `SpeechServerError` that repeats neither answer nor key."""
    with pytest.raises(SpeechServerError) as caught:
        ask(wire)
    assert caught.value.params["kind"] == kind
    assert caught.value.params["server"] == OPTIONS.url
    assert "a-key" not in str(caught.value)
    assert "child" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://u:p@x/v1", "nonsense"])
def test_an_address_that_cannot_work_is_refused_at_once(url: str) -> None:
    """A wrong address is told before anything is sent."""
    with pytest.raises(SpeechServerError):
        HttpRecogniser(ServerOptions(url=url, model="m"))


@pytest.mark.parametrize(("text", "rate"), [("", 1.0), ("?!", 1.0), ("x" * 5000, 1.0), ("a", 9.0)])
def test_what_cannot_be_spoken_is_not_sent(text: str, rate: float) -> None:
    """No letter, far too many, a pace nobody understands: refused here."""
    wire = cut(AssertionError)
    with pytest.raises(SpeechTextError):
        HttpSynthesiser(OPTIONS, wire=wire).synthesise(text, language="en", rate=rate)


def test_the_key_is_never_shown() -> None:
    """Neither its representation nor a message holds it."""
    assert "a-key" not in repr(OPTIONS)
    assert "a-key" not in str(OPTIONS)


def test_a_form_is_what_a_strangers_parser_reads() -> None:
    """The parts come out of Python's own MIME parser as they went in."""
    from email import message_from_bytes  # noqa: PLC0415 - used here alone

    wav = to_wav(SECOND)
    body = multipart("b0undary", {"model": "m", "language": "en"}, wav)
    head = b'Content-Type: multipart/form-data; boundary="b0undary"\r\n\r\n'
    parts = message_from_bytes(head + body).get_payload()
    assert isinstance(parts, list)
    found = {str(one.get_param("name", header="content-disposition")): one for one in parts}
    assert found["model"].get_payload() == "m"
    assert found["file"].get_payload(decode=True) == wav
