"""What was said around a practice, as XiaoZhi's servers report it (`docs/rules.md 22`)."""

from typing import Final

import msgspec
from litestar import post

from etude.people.errors import DeviceUnknownError, LearnerErasedError
from etude.people.scopes import Scope
from etude.sessions import chat_reports
from etude.sessions.batch import MAX_BODY_BYTES
from etude.sessions.chat_reports import ChatReport
from etude.sessions.errors import (
    DeviceNotNamedError,
    InstancePartUnusableError,
    RecordingUnusableError,
    SessionErasedError,
    SessionForeignError,
    SessionIdInvalidError,
)
from etude.sessions.reading import check_session_id
from etude.store.errors import StoreUnavailable
from etude.web.auth import JSON
from etude.web.declared import Body, declared
from etude.web.errors import BodyMalformedError, RequestInvalidError
from etude.web.services import HttpRequest, services_of
from etude.web.task_instances import BELOW, read_json, sender_of

_PATH: Final = "/agent/chat-history/report"


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """A report is durable; `audio_id` names its recording, to be used in a turn."""

    ok: bool = True
    audio_id: str | None


class ReportedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A report is durable."""

    code: int = 0
    msg: str = "success"
    data: Reported


@post(
    [_PATH, BELOW + _PATH],
    status_code=200,
    opt=declared(
        roles=("server",),
        needs=Scope.UPLOAD_ON_BEHALF,
        raises=(
            SessionIdInvalidError,
            DeviceNotNamedError,
            DeviceUnknownError,
            SessionForeignError,
            SessionErasedError,
            LearnerErasedError,
            InstancePartUnusableError,
            RecordingUnusableError,
            BodyMalformedError,
            RequestInvalidError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(JSON,),
            limit_bytes=MAX_BODY_BYTES,
            compressible=True,
            model=ChatReport,
            description="One thing said, with or without its recording (WAV in base64).",
        ),
        envelope=True,
    ),
    tags=["Tasks"],
)
async def report_chat(request: HttpRequest) -> ReportedAnswer:
    """Keep one thing said in a session, and its recording."""
    services = services_of(request)
    report = await read_json(request, ChatReport)
    check_session_id(report.session_id)
    audio_id = await chat_reports.keep(
        services.database,
        services.blobs,
        services.clock,
        services.ingest,
        report,
        await sender_of(request, report.mac_address),
    )
    return ReportedAnswer(data=Reported(audio_id=audio_id))


route_handlers = [report_chat]
