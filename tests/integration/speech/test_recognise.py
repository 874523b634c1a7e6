"""The contract of recognition, kept by the embedded engine and by a server over real HTTP."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from etude.speech.audio import Pcm, resampled
from etude.speech.engines import Engines
from etude.speech.errors import SpeechLanguageError
from etude.speech.recognise import Recogniser
from etude.speech.recognise_http import HttpRecogniser
from etude.speech.speech_server import ServerOptions
from etude.testing.waiting import joined

APPLES = "How many apples do you have?"
SILENCE = Pcm(sample_rate=16_000, samples=bytes(64_000))


class Server(BaseHTTPRequestHandler):
    """Answers as a server would whose model hears well."""

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"]))
        heard = APPLES if any(form[form.index(b"RIFF") + 44 : -80]) else ""
        body = json.dumps({"text": heard}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        joined(thread)


@pytest.fixture(params=["embedded", "http"])
def recogniser(request: pytest.FixtureRequest, engines: Engines, address: str) -> Recogniser:
    if request.param == "embedded":
        return engines.recogniser()
    return HttpRecogniser(ServerOptions(url=address, model="m"))


def test_what_was_said_is_heard(recogniser: Recogniser, spoken: dict[str, Pcm]) -> None:
    """A sentence comes back in words, with language, engine and model beside it."""
    heard = recogniser.recognise(spoken[APPLES], language="en-US")
    assert "apples" in heard.text.lower()
    assert (heard.language, heard.engine, heard.model) == (
        "en-US",
        recogniser.card.engine,
        recogniser.card.model,
    )


def test_any_rate_will_do(recogniser: Recogniser, spoken: dict[str, Pcm]) -> None:
    """Sound at the rate of the devices is heard as well."""
    sound = resampled(spoken[APPLES], 24_000)
    assert "apples" in recogniser.recognise(sound, language="en").text.lower()


@pytest.mark.parametrize("count", [0, 1, 100, 700])
def test_next_to_no_sound_is_no_fault(recogniser: Recogniser, count: int) -> None:
    """A handful of samples is answered: nothing much was heard."""
    sound = Pcm(sample_rate=16_000, samples=bytes(2 * count))
    heard = recogniser.recognise(sound, language="en", expected_text="hello")
    assert len(heard.text) < 40


def test_the_expected_text_leads_nobody(recogniser: Recogniser, spoken: dict[str, Pcm]) -> None:
    """What was to be read does not turn into what was heard."""
    heard = recogniser.recognise(
        spoken[APPLES], language="en", expected_text="A dog ran in the fog"
    )
    assert "apples" in heard.text.lower()


def test_the_expected_text_is_scored(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """Its tokens are probable where it was read, and not where another was."""
    recogniser = engines.recogniser()

    def mean(text: str) -> float:
        found = recogniser.recognise(spoken[APPLES], language="en", expected_text=text)
        assert found.expected_tokens is not None
        return sum(one.probability for one in found.expected_tokens) / len(found.expected_tokens)

    right = mean(APPLES)
    assert right > 0.5
    assert mean("Seven green lamps fell over") < 0.2
    assert mean("HOW MANY... apples DO you have") == right  # however it is written


def test_silence_is_known(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """The engine says how likely it is that nobody spoke."""
    recogniser = engines.recogniser()
    silent = recogniser.recognise(SILENCE, language="en").no_speech_probability
    said = recogniser.recognise(spoken[APPLES], language="en").no_speech_probability
    assert silent is not None
    assert said is not None
    assert said < 0.6 < silent


def test_a_long_recording_is_heard_to_its_end(engines: Engines, spoken: dict[str, Pcm]) -> None:
    """Longer than one window: every piece is heard, and nothing is scored as one."""
    pause = bytes(32_000)
    samples = pause.join(one.samples for one in spoken.values()) + pause
    sound = Pcm(sample_rate=16_000, samples=samples * 6)
    heard = engines.recogniser().recognise(sound, language="en", expected_text=APPLES)
    assert sound.duration_ms > 30_000
    assert heard.text.lower().count("apples") >= 5
    assert heard.expected_tokens is None


def test_an_unknown_language_is_refused(engines: Engines) -> None:
    """English-only weights do not pretend to know Chinese."""
    with pytest.raises(SpeechLanguageError) as caught:
        engines.recogniser().recognise(SILENCE, language="zh-CN")
    assert caught.value.params["known"] == "en"
