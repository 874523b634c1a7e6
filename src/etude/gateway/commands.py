"""Doing what web sends over the link: each command once, whatever dies in between.

* Asked again for what it has answered, the gateway answers the same and does nothing.
* Asked again for what it is doing, it answers once when that is done.
* The process died after it began and before it noted the answer: folders and alarms are asked for
  again (the device knows the `msg_id`, and folders that are there stay); a task is not started a
  second time but answered as interrupted, since the child may be in the middle of it.
"""

import asyncio
from typing import Final

import msgspec
import structlog

from etude.clock import Clock
from etude.gateway.actions import Action, ActionPayloadError, read_payload
from etude.gateway.command_ledger import CommandLedger
from etude.gateway.control import CANNOT, INTERRUPTED, Ack, Control, Offline, Outcome
from etude.gateway.link_messages import Answer, Deliver

DISCONNECT: Final = "DISCONNECT"

log = structlog.get_logger("etude.gateway")


class _Connection(msgspec.Struct, frozen=True):
    connection_id: str


class CommandRunner:
    """Does commands. Lives as long as the process, belongs to one event loop."""

    def __init__(self, control: Control, ledger: CommandLedger, clock: Clock) -> None:
        """Act through `control`; remember in an open `ledger`."""
        self._control = control
        self._ledger = ledger
        self._clock = clock
        self._doing: dict[str, asyncio.Task[Answer]] = {}

    async def run(self, command: Deliver) -> Answer:
        """Do a command, or answer again what it came to. Fails only when it is cancelled."""
        doing = self._doing.get(command.msg_id)
        if doing is None:
            doing = asyncio.create_task(self._run(command))
            self._doing[command.msg_id] = doing
            doing.add_done_callback(lambda _: self._doing.pop(command.msg_id, None))
        return await asyncio.shield(doing)

    async def _run(self, command: Deliver) -> Answer:
        try:
            answer = await self._once(command)
        except Exception as error:
            log.exception("command failed", action="gateway.command_failed", name=command.action)
            answer = _answer(command, Ack(code=CANNOT, message=type(error).__name__))
        log.info(
            "command",
            action="gateway.command",
            name=command.action,
            device_id=command.device_id,
            msg_id=command.msg_id,
            outcome=answer.outcome,
        )
        return answer

    async def _once(self, command: Deliver) -> Answer:
        if command.action == DISCONNECT:
            named = msgspec.json.decode(command.payload, type=_Connection)
            self._control.disconnect(command.device_id, named.connection_id)
            return _answer(command, Ack())
        known = self._ledger.find(command.msg_id)
        if known is not None and known.answer is not None:
            return known.answer
        try:
            action = Action(command.action)
            payload = read_payload(action, msgspec.json.decode(command.payload))
        except (ValueError, ActionPayloadError):  # of a newer web
            return _answer(command, Ack(code=CANNOT, message="unknown to this gateway"))
        try:
            if known is not None and known.step == "begun" and action is Action.START_APP_TASK:
                outcome: Outcome = Ack(code=INTERRUPTED, message="interrupted, perhaps started")
            else:
                await self._ledger.begin(command.msg_id, self._now_s())
                outcome = await self._control.send_action(
                    command.device_id, action, payload, command.msg_id
                )
            return await self._note(command, outcome)
        except OSError as error:
            log.error(  # noqa: TRY400 - the cause is the disk, a traceback says nothing more
                "ledger not written", action="gateway.ledger_failed", errno=error.errno
            )
            return _answer(command, Offline())

    async def _note(self, command: Deliver, outcome: Outcome) -> Answer:
        answer = _answer(command, outcome)
        try:
            await self._ledger.answer(command.msg_id, answer, self._now_s())
        except OSError as error:  # done is done; only a later process would not know
            log.error(  # noqa: TRY400 - the cause is the disk, a traceback says nothing more
                "ledger not written", action="gateway.ledger_failed", errno=error.errno
            )
        return answer

    def _now_s(self) -> float:
        return self._clock.now().timestamp()


def _answer(command: Deliver, outcome: Outcome) -> Answer:
    match outcome:
        case Ack(code=0):
            return Answer(msg_id=command.msg_id, outcome="done", message=outcome.message[:200])
        case Ack():
            return Answer(
                msg_id=command.msg_id,
                outcome="refused",
                code=outcome.code,
                message=outcome.message[:200],
            )
        case Offline():
            return Answer(msg_id=command.msg_id, outcome="offline")
        case _:
            return Answer(msg_id=command.msg_id, outcome="timeout")
