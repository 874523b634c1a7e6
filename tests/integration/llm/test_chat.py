"""Asking a model, over real HTTP, with a server that plays every part."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from etude.i18n import LOCALES, text
from etude.llm import chat as chat_module
from etude.llm.answers import Usage
from etude.llm.chat import Chat, Endpoint, Message, Request
from etude.llm.errors import (
    LlmAddressError,
    LlmAnswerError,
    LlmError,
    LlmNotInstalledError,
    LlmThrottledError,
    LlmTimeoutError,
    LlmUnreachableError,
)
from etude.testing.fake_llm import Cuts, Drips, FakeModel, Floods, Hangs, Part, Raw, Says, Status
from etude.testing.waiting import within

QUESTION = Request(messages=(Message("system", "Be brief."), Message("user", "How was bar 5?")))


def ask(url: str, *, key: str | None = "sk-secret", total_s: float = 30.0) -> Any:
    async def run() -> Any:
        async with Chat(Endpoint(url=url, model="small", key=key, total_s=total_s)) as chat:
            return await chat.ask(QUESTION)

    return asyncio.run(run())


def test_an_answer_comes_with_what_it_cost() -> None:
    """Text, model and tokens are those of the endpoint; the key is sent as a bearer token."""
    model = FakeModel([Says("Clean.", prompt_tokens=20, completion_tokens=2)])
    with model.serve() as url:
        answer = ask(url)
    assert (answer.text, answer.model) == ("Clean.", "small")
    assert answer.usage == Usage(prompt_tokens=20, completion_tokens=2)
    (asked,) = model.asked
    assert asked.headers["authorization"] == "Bearer sk-secret"
    assert asked.body["messages"][1] == {"role": "user", "content": "How was bar 5?"}
    assert asked.body["max_tokens"] == QUESTION.max_tokens
    assert "temperature" not in asked.body


def test_the_environment_of_another_library_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or organisation for OpenAI itself does not reach the configured endpoint."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-somebody")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://192.0.2.1/v1")
    model = FakeModel()
    with model.serve() as url:
        ask(url, key=None)
    sent = model.asked[0].headers
    assert "authorization" not in sent
    assert not any("of-somebody" in value for value in sent.values())


@pytest.mark.parametrize(
    ("part", "code", "params", "pointless"),
    [
        (Status(429, headers={"Retry-After": "7"}), "LLM_THROTTLED", {"retry_after_s": 7}, False),
        (Status(429, headers={"Retry-After": "soon"}), "LLM_THROTTLED", {}, False),
        (Status(429, "insufficient_quota"), "LLM_REFUSED", {"reason": "quota"}, True),
        (Status(401), "LLM_REFUSED", {"reason": "credentials"}, True),
        (Status(404), "LLM_REFUSED", {"reason": "model"}, True),
        (Status(400), "LLM_REFUSED", {"reason": "request"}, True),
        (Status(500), "LLM_BROKEN", {"http_status": 500}, False),
        (Status(503), "LLM_BROKEN", {"http_status": 503}, False),
        (Raw(b"<html>"), "LLM_ANSWER_INVALID", {"reason": "not_json_of_a_chat"}, False),
        (Raw(b"[" * 100_000), "LLM_ANSWER_INVALID", {}, False),
        (Raw(b'{"choices": []}'), "LLM_ANSWER_INVALID", {"reason": "no_text"}, False),
        (Raw(b'{"choices": [{"message": {}}]}'), "LLM_ANSWER_INVALID", {}, False),
        (Raw(b"x", {"Content-Encoding": "gzip"}), "LLM_ANSWER_INVALID", {}, False),
        (Raw(b"{}", {"Content-Type": "text/html"}), "LLM_ANSWER_INVALID", {}, False),
        (Says(" "), "LLM_ANSWER_INVALID", {"reason": "no_text"}, False),
        (Says("So", finish_reason="length"), "LLM_ANSWER_INVALID", {}, False),
        (Floods(), "LLM_ANSWER_TOO_LARGE", {}, True),
        (Cuts(), "LLM_UNREACHABLE", {}, False),
    ],
)
def test_every_failure_has_its_category(
    part: Part, code: str, params: dict[str, Any], *, pointless: bool
) -> None:
    """One typed error, one request, no secret, and whether asking again can help."""
    model = FakeModel([part])
    with model.serve() as url, pytest.raises(LlmError) as raised:
        ask(url)
    error = raised.value
    assert error.code == code
    assert error.params | params == error.params
    assert error.retry_is_pointless is pointless
    assert len(model.asked) == 1
    for locale in LOCALES:
        assert "sk-secret" not in text(f"error.{code}", locale, **error.params) + repr(error)


@pytest.mark.parametrize("part", [Hangs(), Drips()])
def test_a_slow_model_ends_with_the_time_out(part: Part) -> None:
    """A server that says nothing, or never ends, is left after `total_s`."""
    with FakeModel([part]).serve() as url, pytest.raises(LlmTimeoutError):
        ask(url, total_s=0.3)


def test_a_redirect_is_not_followed() -> None:
    """The key goes to the configured address and nowhere else."""
    elsewhere = FakeModel()
    with elsewhere.serve() as other:
        to = Status(307, headers={"Location": f"{other}/chat/completions"})
        with FakeModel([to]).serve() as url, pytest.raises(LlmError) as raised:
            ask(url)
    assert raised.value.params["reason"] == "redirect"
    assert elsewhere.asked == []


def test_nobody_there_is_said() -> None:
    """A closed port is unreachable, and asking later may help."""
    with FakeModel().serve() as url:
        pass
    with pytest.raises(LlmUnreachableError) as raised:
        ask(url)
    assert not raised.value.retry_is_pointless


def test_a_question_can_be_cancelled() -> None:
    """Cancelling leaves at once, and the next question of the same chat is answered."""
    model = FakeModel([Hangs(), Says("Here.")])

    async def run(url: str) -> str:
        async with Chat(Endpoint(url=url, model="small")) as chat:
            question = asyncio.create_task(chat.ask(QUESTION))
            assert await asyncio.to_thread(model.arrived.acquire, timeout=30)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question
            return (await chat.ask(QUESTION)).text

    with model.serve() as url:
        began = time.monotonic()
        assert asyncio.run(run(url)) == "Here."
    assert time.monotonic() - began < 30  # far below the time-out of the one that hangs


def test_a_pause_is_bounded() -> None:
    """A server that asks for a year of patience gets an hour, one that asks for none a second."""
    for said, pause_s in (("99999999", chat_module.LONGEST_PAUSE_S), ("0", 1)):
        part = Status(429, headers={"Retry-After": said})
        with FakeModel([part]).serve() as url, pytest.raises(LlmThrottledError) as raised:
            ask(url)
        assert raised.value.params["retry_after_s"] == pause_s


@pytest.mark.parametrize(
    ("url", "key", "model"),
    [
        ("ftp://model/v1", None, "small"),
        ("http://", None, "small"),
        ("http://me:hunter2@model/v1", None, "small"),
        ("http://model/v1?key=hunter2", None, "small"),
        ("http://model/v1", "hunter2\n", "small"),
        ("http://model/v1", "", "small"),
        ("http://model/v1", None, " "),
        ("http://model:65616/v1", None, "small"),
    ],
)
def test_what_cannot_be_asked_is_refused_before(url: str, key: str | None, model: str) -> None:
    """A wrong address, key or name is found without a connection, and not shown."""
    with pytest.raises(LlmAddressError) as raised:
        Chat(Endpoint(url=url, key=key, model=model))
    assert "hunter2" not in repr(raised.value)


def test_an_endpoint_does_not_show_its_key() -> None:
    """The key is not in the text of an endpoint, which logs and tracebacks may hold."""
    assert "sk-" not in repr(Endpoint(url="http://model/v1", model="small", key="sk-secret"))


def test_without_the_extra_the_line_that_adds_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package is found before anything is asked, with the line that installs it."""
    monkeypatch.setattr(chat_module.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(LlmNotInstalledError) as raised:
        Chat(Endpoint(url="http://model/v1", model="small"))
    assert raised.value.params["install"] == "pip install 'etude[llm]'"


def test_a_text_of_the_question_is_not_in_an_error() -> None:
    """What was asked does not come back in an error, whatever the server repeats."""
    with FakeModel([Raw(b"How was bar 5?")]).serve() as url, pytest.raises(LlmAnswerError) as r:
        ask(url)
    assert "bar 5" not in repr(r.value)


def stream(url: str, *, total_s: float = 30.0, silence_s: float | None = None) -> Any:
    seen: list[str] = []

    async def run() -> Any:
        endpoint = Endpoint(url=url, model="small", total_s=total_s, silence_s=silence_s)
        async with Chat(endpoint) as chat:
            return await chat.stream(msgspec.structs.replace(QUESTION, model="large"), seen.append)

    return asyncio.run(run()), seen


def test_a_stream_is_read_piece_by_piece() -> None:
    """A long answer comes in pieces, with its tokens, from the model that the request names."""
    words = "A long answer. " * 400
    with (
        model := FakeModel([Says(words, prompt_tokens=5, completion_tokens=1200)])
    ).serve() as url:
        answer, seen = stream(url)
    assert answer.text == "".join(seen) == words
    assert len(seen) > 100
    assert (answer.model, answer.cut) == ("large", False)
    assert answer.usage == Usage(prompt_tokens=5, completion_tokens=1200)
    assert model.asked[0].body["stream_options"] == {"include_usage": True}


def test_a_server_that_does_not_stream_is_understood() -> None:
    """Where a stream was asked for and a whole answer came, that is the answer."""
    with FakeModel([Says("Whole.", streams=False)]).serve() as url:
        answer, seen = stream(url)
    assert (answer.text, seen) == ("Whole.", ["Whole."])


def test_a_stream_says_that_it_was_cut_at_its_limit() -> None:
    """An answer that reached `max_tokens` is there, marked, and unknown usage stays unknown."""
    with FakeModel([Says("Half", finish_reason="length", counts=False)]).serve() as url:
        answer, _ = stream(url)
    assert (answer.text, answer.cut, answer.usage) == ("Half", True, Usage())


_EVENTS = {"Content-Type": "text/event-stream"}


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Cuts("some"), "LLM_UNREACHABLE"),
        (Cuts("some", cleanly=True), "LLM_UNREACHABLE"),
        (Raw(b"data: {nonsense\n\n", _EVENTS), "LLM_ANSWER_INVALID"),
        (Raw(b'data: {"error": {"message": "no"}}\n\n', _EVENTS), "LLM_ANSWER_INVALID"),
        (Raw(b": hello\n\ndata: [DONE]\n\n", _EVENTS), "LLM_ANSWER_INVALID"),
        (Says("x", finish_reason="content_filter"), "LLM_ANSWER_INVALID"),
        (Says("x" * (chat_module.MAX_ANSWER_BYTES + 1)), "LLM_ANSWER_TOO_LARGE"),
        (Status(429), "LLM_THROTTLED"),
        (Status(500), "LLM_BROKEN"),
        (Raw(b"<html>"), "LLM_ANSWER_INVALID"),
    ],
)
def test_every_failure_of_a_stream_has_its_category(part: Part, code: str) -> None:
    """A stream that breaks, lies or never speaks ends in one typed error and one request."""
    with (model := FakeModel([part])).serve() as url, pytest.raises(LlmError) as raised:
        stream(url)
    assert raised.value.code == code
    assert len(model.asked) == 1


def test_a_stream_that_falls_silent_is_left() -> None:
    """A pause longer than `silence_s` ends it, long before the whole may end."""
    with FakeModel([Hangs("Well")]).serve() as url, pytest.raises(LlmTimeoutError):
        stream(url, total_s=600, silence_s=0.3)


def test_cancelling_a_stream_closes_the_connection() -> None:
    """Whoever stops in the middle of an answer is seen to leave by the server, at once."""
    model = FakeModel([Hangs("Well")])

    async def run(url: str) -> float:
        heard = asyncio.Event()
        async with Chat(Endpoint(url=url, model="small")) as chat:
            asking = asyncio.create_task(chat.stream(QUESTION, lambda _: heard.set()))
            await within(heard.wait(), "the model's first words")
            began = time.monotonic()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert await asyncio.to_thread(model.left.acquire, timeout=30)
            return time.monotonic() - began

    with model.serve() as url:
        assert asyncio.run(run(url)) < 2


def test_an_endpoint_is_asked_in_its_dialect() -> None:
    """What it refuses to read is sent by its other name, or not at all, from then on."""
    model = FakeModel(
        [
            Status(400, message="Unsupported parameter: 'max_tokens' is not supported"),
            Status(422, message="stream_options: extra fields not permitted"),
            Says("One."),
            Says("Two."),
        ]
    )

    async def run(url: str) -> list[str]:
        async with Chat(Endpoint(url=url, model="small")) as chat:
            return [(await chat.stream(QUESTION)).text for _ in range(2)]

    with model.serve() as url:
        assert asyncio.run(run(url)) == ["One.", "Two."]
    first, _, third, fourth = (one.body for one in model.asked)
    assert first["max_tokens"] == third["max_completion_tokens"] == QUESTION.max_tokens
    assert "max_tokens" not in fourth
    assert "stream_options" not in fourth


def test_a_refusal_that_names_a_parameter_is_not_asked_for_ever() -> None:
    """A limit that is refused by both of its names is a refusal, after two requests."""
    model = FakeModel(usual=Status(400, message="max_tokens is too large"))
    with model.serve() as url, pytest.raises(LlmError) as raised:
        ask(url)
    assert raised.value.code == "LLM_REFUSED"
    assert len(model.asked) == 2
