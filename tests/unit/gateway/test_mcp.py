import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from etude.errors import EtudeError
from etude.gateway.mcp import FIRST_ID, MOST_PAGES, MOST_TOOLS, McpClient
from etude.gateway.ports import Tool, ToolFailure, ToolResult
from etude.testing.virtual_time import VirtualTimeLoop


class Toy:
    """The device's side: keeps what it was asked, answers when told to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.listed = 0
        self.client = McpClient(self.take, self.count)

    def take(self, payload: Any) -> None:
        self.asked.append(dict(payload))

    def count(self) -> None:
        self.listed += 1

    async def answer(self, **answer: Any) -> None:
        """Answer the last request, after letting the client run."""
        await settle()
        self.client.receive({"jsonrpc": "2.0", "id": self.asked[-1]["id"], **answer})
        await settle()

    async def introduced(self, *names: str) -> None:
        self.client.start()
        await self.answer(result={"capabilities": {"tools": {}}})
        await self.answer(result={"tools": [{"name": name} for name in names]})


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def run(test: Callable[[Toy], Awaitable[None]]) -> None:
    async def body() -> None:
        await test(Toy())

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(body())


def content(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def test_it_introduces_itself_and_lists_the_tools() -> None:
    """Ids are numbers from a high base, vision is there and empty; then comes the list."""

    async def body(toy: Toy) -> None:
        await toy.introduced("self.mp3.play", "self.mp3.stop")
        first, told, listing = toy.asked
        assert first["id"] == FIRST_ID
        assert first["params"]["protocolVersion"] == "2024-11-05"
        assert first["params"]["capabilities"]["vision"] == {"url": "", "token": ""}
        assert (told["method"], "id" in told) == ("notifications/initialized", False)
        assert listing["id"] == FIRST_ID + 1
        assert listing["params"] == {"cursor": "", "withUserTools": False}
        assert list(toy.client.tools or {}) == ["self.mp3.play", "self.mp3.stop"]
        assert toy.listed == 1

    run(body)


def test_pages_are_followed() -> None:
    """Until there is no cursor any more; the first of two tools of a name counts."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        entry = {"name": "a", "description": "d", "inputSchema": {"type": "object"}}
        await toy.answer(result={"tools": [entry], "nextCursor": "b"})
        assert toy.asked[-1]["params"]["cursor"] == "b"
        await toy.answer(result={"tools": [{"name": "b"}, {"name": "a"}], "nextCursor": ""})
        assert toy.client.tools == {
            "a": Tool(name="a", description="d", input_schema={"type": "object"}),
            "b": Tool(name="b"),
        }

    run(body)


def test_a_cursor_that_stays_ends_the_list() -> None:
    """No device keeps us asking for ever."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        for _ in range(2):
            await toy.answer(result={"tools": [{"name": "a"}], "nextCursor": "same"})
        assert toy.listed == 1

    run(body)


def test_pages_and_tools_are_bounded() -> None:
    """32 pages, 256 tools."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        for page in range(MOST_PAGES):
            tools = [{"name": f"{page}.{number}"} for number in range(20)]
            await toy.answer(result={"tools": tools, "nextCursor": str(page)})
        assert len(toy.client.tools or {}) == MOST_TOOLS
        assert len(toy.asked) == 2 + MOST_PAGES

    run(body)


def test_a_list_that_breaks_off_counts_so_far() -> None:
    """The second page never comes: after 10 s, the first is what there is."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        await toy.answer(result={"tools": [{"name": "a"}], "nextCursor": "b"})
        await asyncio.sleep(11)
        assert list(toy.client.tools or {}) == ["a"]

    run(body)


def test_a_device_that_answers_nothing_has_no_tools() -> None:
    """After half a minute that is settled, and nothing waits any more."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await asyncio.sleep(29)
        assert (toy.client.tools, toy.listed, toy.client.calling) == (None, 0, True)
        await asyncio.sleep(2)
        assert (toy.client.tools, toy.listed, toy.client.calling) == ({}, 1, False)

    run(body)


def test_a_list_that_does_not_come_is_asked_for_again() -> None:
    """Once: the device may have been waiting for its sound to end."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        await asyncio.sleep(11)
        await toy.answer(result={"tools": [{"name": "a"}]})
        assert list(toy.client.tools or {}) == ["a"]

    run(body)


def test_a_device_that_fails_to_initialise_is_asked_all_the_same() -> None:
    """Some answer only what they know."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(error={"message": "Method not implemented"})
        await toy.answer(result={"tools": [{"name": "a"}]})
        assert list(toy.client.tools or {}) == ["a"]

    run(body)


@pytest.mark.parametrize(
    "tools",
    [None, {}, "x", [None, 1, [], {}, {"name": 5}, {"name": ""}, {"name": "x" * 200}]],
)
def test_entries_that_are_none_are_left_out(tools: Any) -> None:
    """A strange list is an empty one."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        await toy.answer(result={"tools": tools})
        assert toy.client.tools == {}

    run(body)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"result": content("true", isError=False)}, ToolResult(text="true")),
        (
            {"result": content("x", isError=True)},
            ToolResult(failure=ToolFailure.REFUSED, message="x"),
        ),
        ({"result": {"content": [{"type": "image"}, 5, {"text": 5}]}}, ToolResult(text="")),
        ({"result": {"content": None}}, ToolResult(text="")),
        (
            {"error": {"message": "range"}},
            ToolResult(failure=ToolFailure.REFUSED, message="range"),
        ),
        (
            {"error": {"message": "Unknown tool: a"}},
            ToolResult(failure=ToolFailure.UNKNOWN_TOOL, message="Unknown tool: a"),
        ),
        ({"error": "x"}, ToolResult(failure=ToolFailure.REFUSED, message="x")),
        ({"result": 5}, ToolResult(failure=ToolFailure.REFUSED)),
        ({}, ToolResult(failure=ToolFailure.REFUSED)),
    ],
)  # fmt: skip
def test_an_answer_becomes_a_result(answer: dict[str, Any], result: ToolResult) -> None:
    """Whatever shape it has."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")
        call = toy.client.call("a", {"path": "/x"}, 15)
        await toy.answer(**answer)
        assert await call == result
        assert toy.asked[-1]["params"] == {"name": "a", "arguments": {"path": "/x"}}

    run(body)


def test_a_tool_that_is_not_listed_is_not_asked_for() -> None:
    """Some clients would never answer."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")
        result = await toy.client.call("b", {}, 15)
        assert result.failure is ToolFailure.UNKNOWN_TOOL
        assert toy.asked[-1]["method"] == "tools/list"

    run(body)


def test_every_call_has_its_own_time_out() -> None:
    """A missing reply is normal; a late one is ignored."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")
        short, long = toy.client.call("a", {}, 2), toy.client.call("a", {}, 30)
        await asyncio.sleep(3)
        assert (await short).failure is ToolFailure.TIMEOUT
        late = {"id": toy.asked[-2]["id"], "result": content("late")}
        toy.client.receive(late)
        await toy.answer(result=content("in time"))
        assert (await long).text == "in time"

    run(body)


def test_replies_go_to_their_calls() -> None:
    """In any order; doubled, foreign and quoted ids do no harm."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")
        calls = [toy.client.call("a", {}, 15) for _ in range(3)]
        await settle()
        ids = [asked["id"] for asked in toy.asked[-3:]]
        for strange in (None, True, "x", 1, -1, [], {}, 1e300, "9" * 99, float("inf")):
            toy.client.receive({"id": strange, "result": content("foreign")})
        toy.client.receive({"id": str(ids[2]), "result": content("2")})
        toy.client.receive({"id": float(ids[0]), "result": content("0")})
        toy.client.receive({"id": ids[0], "result": content("again")})
        toy.client.receive({"id": ids[1], "result": content("1")})
        assert [(await call).text for call in calls] == ["0", "1", "2"]

    run(body)


def test_the_devices_own_notifications_are_ignored() -> None:
    """Even with the id of a call of ours."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")
        call = toy.client.call("a", {}, 1)
        await settle()
        toy.client.receive({"method": "notifications/x"})
        toy.client.receive({"method": "ping", "id": toy.asked[-1]["id"], "result": {}})
        assert (await call).failure is ToolFailure.TIMEOUT

    run(body)


def test_a_closed_connection_fails_every_call() -> None:
    """Those that wait, and those that come."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")
        call = toy.client.call("a", {}, 15)
        await settle()
        toy.client.close()
        assert (await call).failure is ToolFailure.CLOSED
        assert (await toy.client.call("a", {}, 15)).failure is ToolFailure.CLOSED

    run(body)


def test_a_connection_closed_while_listing_knows_no_tools() -> None:
    """And practice is not told."""

    async def body(toy: Toy) -> None:
        toy.client.start()
        await toy.answer(result={})
        toy.client.close()
        await settle()
        assert (toy.client.tools, toy.listed) == (None, 0)

    run(body)


def test_arguments_that_cannot_be_sent_are_a_refusal() -> None:
    """Too long for a device, or no JSON: the task does not fail."""

    async def body(toy: Toy) -> None:
        await toy.introduced("a")

        def refuse(_: object) -> None:
            raise EtudeError

        toy.client._send = refuse
        assert (await toy.client.call("a", {}, 15)).failure is ToolFailure.REFUSED

    run(body)


def test_without_tools_that_is_known_at_once() -> None:
    """A client whose hello names none is not asked."""

    async def body(toy: Toy) -> None:
        toy.client.start_without()
        assert (toy.client.tools, toy.listed, toy.asked) == ({}, 1, [])

    run(body)
