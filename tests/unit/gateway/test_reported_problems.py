"""What others' users reported and what their code shows, row by row: where it is tested here.

The numbers are those of two tables: 28 problems reported to the XiaoZhi server, firmware and
gateways (R), and 9 defects read in that server's code (D). A row names the tests that hold it off,
or says why it cannot apply. What a row needs and no other module tests is tested at the end.
"""

import ast
import asyncio
import json
from pathlib import Path

import pytest
import structlog

from etude.gateway.connection import DeviceConnection
from etude.gateway.playback import Ticker
from etude.gateway.ports import CloseReason
from etude.testing.memory_wire import MemoryWire, NotingPractice
from etude.testing.virtual_time import run

TESTS = Path(__file__).parents[2]
HERE = "unit/gateway/test_reported_problems.py"
CONNECTION = "unit/gateway/test_connection.py"
PLAYBACK = "unit/gateway/test_playback.py"
MCP = "unit/gateway/test_mcp.py"
FRAMES = "unit/gateway/test_frames.py"
MESSAGES = "unit/gateway/test_messages.py"
DETECT = "unit/gateway/test_detect.py"
SOCKET = "integration/gateway/test_websocket.py"
HOSTILE = "integration/gateway/test_websocket_hostile.py"
FOLLOW = "unit/practice/test_follow_read.py"
RECORDER = "unit/practice/test_recorder.py"

COVERED: dict[str, list[str]] = {
    # reconnects leak memory and sockets
    "R1": [f"{SOCKET}::test_reconnects_leave_nothing_behind"],
    # memory grows while nobody speaks
    "R3": [
        f"{HERE}::test_sound_is_passed_on_and_not_kept",
        f"{RECORDER}::test_memory_is_bounded_by_dropping_the_oldest_sound",
    ],
    # decoders, clients and threads outlive a connection
    "R4": [f"{SOCKET}::test_reconnects_leave_nothing_behind"],
    # one device's sound plays on another
    "R5": [
        f"{SOCKET}::test_two_devices_hear_only_their_own",
        f"{RECORDER}::test_two_devices_never_share_a_packet",
    ],
    # two devices are not served in parallel
    "R6": [
        f"{SOCKET}::test_two_devices_hear_only_their_own",
        f"{PLAYBACK}::test_many_streams_share_their_wakes",
    ],
    # closing one client blocks another's connect
    "R7": [f"{SOCKET}::test_a_half_open_socket_blocks_no_return"],
    # an abort is lost, the next turn stays silent
    "R8": [
        f"{CONNECTION}::test_an_abort_is_always_answered",
        f"{HOSTILE}::test_a_storm_of_aborts_is_answered",
    ],
    # after an interruption the old answer goes on
    "R9": [
        f"{PLAYBACK}::test_nothing_leaves_after_a_stop",
        f"{PLAYBACK}::test_another_clip_stops_the_first",
    ],
    # stutter; the last words are cut
    "R10": [f"{PLAYBACK}::test_a_clip_is_paced", f"{PLAYBACK}::test_errors_do_not_add_up"],
    # a burst of frames crashes small boards
    "R11": [
        f"{PLAYBACK}::test_the_pre_buffer_changes_no_end",
        f"{PLAYBACK}::test_after_a_standstill_the_clip_moves",
    ],
    # the first syllables are swallowed
    "R12": [f"{PLAYBACK}::test_a_clip_is_paced"],
    # recognition loses what it corrects at its end
    "R14": [f"{FOLLOW}::test_the_last_of_several_recognitions_stays"],
    # it hears itself
    "R16": [
        f"{FOLLOW}::test_what_is_said_while_a_clip_plays_is_nobodys",
        f"{FOLLOW}::test_the_toys_own_prompt_is_no_answer",
    ],
    # idle closing during long playback, or never
    "R17": [
        f"{CONNECTION}::test_whatever_happens_keeps_it_open",
        f"{CONNECTION}::test_two_minutes_of_nothing_end_it",
        f"{CONNECTION}::test_a_noisy_room_ends_after_half_an_hour",
    ],
    # the server drops a device and nobody can see why
    "R18": [f"{HERE}::test_why_a_connection_ended_is_logged_once"],
    # tool calls time out, long tool lists come out empty
    "R19": [
        f"{MCP}::test_every_call_has_its_own_time_out",
        f"{MCP}::test_pages_are_followed",
        f"{MCP}::test_pages_and_tools_are_bounded",
    ],
    # a tool hangs until somebody presses the button
    "R21": [
        f"{MCP}::test_every_call_has_its_own_time_out",
        f"{CONNECTION}::test_tools_are_asked_for_without_waiting",
    ],
    # version 3 frames, 20 ms frames and odd packets break the decoder
    "R22": [
        f"{FRAMES}::test_what_is_packed_is_unpacked",
        f"{CONNECTION}::test_the_layout_is_the_headers_or_the_hellos",
        f"{HOSTILE}::test_packets_of_every_length_arrive_as_they_are",
    ],
    # one can log in as anybody
    "R26": ["unit/gateway/test_admission.py::test_no_token_or_a_forged_one_is_401"],
    # no credential per device
    "R27": ["unit/gateway/test_admission.py::test_a_foreign_credential_is_403"],
    # messages without the right session id
    "R28": [f"{MESSAGES}::test_every_message_carries_the_session"],
    # the hello is dropped while a manager is slow
    "D1": [
        f"{CONNECTION}::test_the_hello_is_answered_at_once",
        f"{FOLLOW}::test_a_record_that_fails_stops_nothing",
    ],
    # an abort loses the reports of finished turns
    "D2": [f"{FOLLOW}::test_the_last_turn_is_written_before_it_is_over"],
    # a detected text mutes what follows
    "D4": [
        f"{HERE}::test_what_is_said_right_after_a_detected_text_is_heard",
        f"{DETECT}::test_a_mark_without_sense_is_nothing",
    ],
    # decoding on the loop; queues without bounds
    "D5": [
        f"{HERE}::test_sound_is_passed_on_and_not_kept",
        f"{HOSTILE}::test_a_flood_ends_its_own_connection",
        f"{HOSTILE}::test_a_client_that_does_not_read_is_cut",
    ],
    # headers and messages in the logs
    "D6": [f"{SOCKET}::test_no_token_gets_into_a_log"],
    # authentication off by default; the device socket takes the server's own commands
    "D7": [
        f"{SOCKET}::test_who_may_not_come_in_is_refused_before_the_upgrade",
        f"{SOCKET}::test_an_admission_that_fails_lets_nobody_in",
        f"{MESSAGES}::test_what_says_nothing_says_why",
    ],
    # gigabytes of models as hard requirements
    "D9": [f"{HERE}::test_no_model_is_a_requirement"],
}

NOT_APPLICABLE: dict[str, str] = {
    "R2": "no connection loads a model: the gateway process has none",
    "R13": "no voice activity decides what is kept: every packet of a window is",
    "R15": "no step of the gateway waits for a recogniser, so a cold one delays nothing",
    "R20": "the server runs no tools of its own over MCP",
    "R23": "there is no MQTT + UDP audio",
    "R24": "there is no voiceprint",
    "R25": "no secret is in the repository: keys are made on the spot by `etude init`",
    "D3": "uploads have one thread and one client, and no loop of their own",
    "D8": "these are its management pages; ours answer with true statuses, see `docs/http-api.md`",
}


def test_every_row_has_its_entry() -> None:
    """28 reported problems and 9 defects, each once."""
    rows = {f"R{number}" for number in range(1, 29)} | {f"D{number}" for number in range(1, 10)}
    assert set(COVERED) | set(NOT_APPLICABLE) == rows
    assert not set(COVERED) & set(NOT_APPLICABLE)


@pytest.mark.parametrize("row", COVERED)
def test_every_entry_names_tests_that_exist(row: str) -> None:
    """A test that is renamed or removed takes its row with it."""
    for name in COVERED[row]:
        file, _, function = name.partition("::")
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, name


class Link:
    """A greeted connection."""

    def __init__(self) -> None:
        self.practices: list[NotingPractice] = []
        self.connection = DeviceConnection(
            device_id="aa",
            connection_id="c-1",
            wire=MemoryWire(asyncio.get_running_loop().time),
            make_practice=self.make,
            ticker=Ticker(),
        )
        self.connection.receive('{"type":"hello"}')

    def make(self, device: object) -> NotingPractice:
        assert isinstance(device, DeviceConnection)
        self.practices.append(NotingPractice(device))
        return self.practices[-1]


def test_sound_is_passed_on_and_not_kept() -> None:
    """R3, D5: the packet itself goes on, undecoded, and the connection holds no list of them."""

    async def body() -> None:
        link = Link()
        held = {name for name, value in vars(link.connection).items() if _holds(value)}
        packets = [bytes([number]) * 80 for number in range(200)]
        for packet in packets:
            link.connection.receive(packet)
        heard = [event[1] for event in link.practices[0].heard if event[0] == "audio"]
        assert all(a is b for a, b in zip(heard, packets, strict=True))
        assert {name for name, value in vars(link.connection).items() if _holds(value)} == held

    run(body)


def _holds(value: object) -> bool:
    return isinstance(value, list | dict | set | tuple | bytes | bytearray) and bool(value)


def test_why_a_connection_ended_is_logged_once() -> None:
    """R18: device, connection and reason; later reasons change nothing."""

    async def body() -> None:
        link = Link()
        link.connection.close(CloseReason.REVOKED)
        link.connection.ended(CloseReason.DEVICE_LEFT)

    with structlog.testing.capture_logs() as lines:
        run(body)
    (line,) = [line for line in lines if line["action"] == "device.closed"]
    assert (line["device"], line["connection"], line["reason"]) == ("aa", "c-1", "revoked")


def test_what_is_said_right_after_a_detected_text_is_heard() -> None:
    """D4: no word and no event mutes the microphone."""

    async def body() -> None:
        link = Link()
        for text in ("你好小智", "[skill_event]audio.completed|a|b|1000", "[skill_event]nonsense"):
            message = {"type": "listen", "state": "detect", "text": text}
            link.connection.receive(json.dumps(message))
            link.connection.receive(b"voice")
            assert link.practices[0].names()[-1] == "audio"

    run(body)


def test_no_model_is_a_requirement() -> None:
    """D9: what runs the gateway is small."""
    locked = (TESTS.parent / "requirements.lock").read_text("utf-8")
    names = {line.partition("==")[0] for line in locked.splitlines() if "==" in line}
    assert not names & {"torch", "torchaudio", "funasr", "tensorflow", "transformers"}
    assert "websockets" in names
