"""The messages between the pool and its processes."""

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import etude.speech.errors
from etude.errors import EtudeError
from etude.speech.audio import Pcm
from etude.speech.errors import ModelMissingError, SpeechEngineError
from etude.speech.requests import (
    Align,
    Failed,
    Recognise,
    Request,
    Synthesise,
    receive,
    send,
)

sounds = st.builds(Pcm, sample_rate=st.integers(1, 192_000), samples=st.binary(max_size=200))
requests = st.one_of(
    st.builds(
        Recognise, sound=sounds, language=st.text(), expected_text=st.none() | st.text(max_size=30)
    ),
    st.builds(Align, sound=sounds, text=st.text(), language=st.text()),
    st.builds(
        Synthesise, text=st.text(), language=st.text(), rate=st.floats(0.5, 2.0, allow_nan=False)
    ),
)


@given(st.lists(requests, max_size=4))
def test_what_is_sent_is_received(given_requests: list[Request]) -> None:
    """Any requests, one behind the other, come out as they went in."""
    stream = io.BytesIO()
    for request in given_requests:
        send(stream, request)
    stream.seek(0)
    decoder = msgspec.msgpack.Decoder(Request)
    received = []
    while (body := receive(stream)) is not None:
        received.append(decoder.decode(body))
    assert received == given_requests


@given(st.binary(max_size=40), st.integers(0, 40))
def test_a_message_that_was_cut_off_is_none(body: bytes, cut: int) -> None:
    """A stream that ends in a message ends: no half message is read."""
    whole = len(body).to_bytes(4, "big") + body
    kept = whole[: min(cut, len(whole) - 1)]
    assert receive(io.BytesIO(kept)) is None


def test_a_length_that_cannot_be_is_the_end() -> None:
    """Four bytes that say four gigabytes are not believed."""
    assert receive(io.BytesIO(b"\xff" * 64)) is None


@pytest.mark.parametrize(
    "made",
    [
        one
        for one in vars(etude.speech.errors).values()
        if isinstance(one, type) and issubclass(one, EtudeError) and "code" in vars(one)
    ],
)
def test_an_error_crosses_with_its_class(made: type[EtudeError]) -> None:
    """Each error of speech is raised on the other side as what it was."""
    error = Failed(made.code, {"reason": "x"}).error()
    assert type(error) is made
    assert error.params == {"reason": "x"}


def test_an_error_of_another_part_is_an_engines_failure() -> None:
    """A code that speech does not know is told as an engine's."""
    assert isinstance(Failed("SOMETHING_ELSE", {}).error(), SpeechEngineError)
    assert isinstance(Failed(ModelMissingError.code, {}).error(), ModelMissingError)
