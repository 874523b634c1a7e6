"""The second answer shape: `{code, msg, data}`, for who speaks to XiaoZhi's management server.

`/task/…` and `/agent/…`, also below `/xiaozhi`, answer so in every case, failures included
(`docs/rules.md 22`). The HTTP status is the true one; `code` is 0, or the status again, or the
number that XiaoZhi's servers give to a failure. What fails and why is decided where it is for all
routes.
"""

import re
from typing import Any, Final

import msgspec
from litestar import Response

from etude.people.errors import DeviceUnknownError
from etude.web import problems
from etude.web.services import HttpRequest

MEDIA_TYPE: Final = "application/json"
DEVICE_UNKNOWN: Final = 10041
_PATHS: Final = re.compile(r"(/xiaozhi)?/(task|agent)/")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What an envelope says of a failure. `data` is `false` where the device is unknown."""

    code: int
    msg: str
    data: bool | None = None


def answer_failure(request: HttpRequest, exception: Exception) -> Response[bytes]:
    """Answer what a route raised in the shape of its address; the application's error handler."""
    problem = problems.answer_problem(request, exception)
    if not _PATHS.match(request.scope["path"]):
        return problem
    told: dict[str, Any] = msgspec.json.decode(problem.content)
    is_unknown_device = told["code"] == DeviceUnknownError.code
    failure = Failure(
        code=DEVICE_UNKNOWN if is_unknown_device else told["status"],
        msg=told["detail"],
        data=False if is_unknown_device else None,
    )
    return Response(
        content=msgspec.json.encode(failure),
        status_code=problem.status_code,
        media_type=MEDIA_TYPE,
        headers=problem.headers,
    )
