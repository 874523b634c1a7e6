"""The server's door for courses that another installation publishes here.

For machines, with the publish token; what it takes and answers is `etude.courseware.submission`.
"""

from typing import Annotated, Final

from litestar import get, post
from litestar.params import JSONBody, QueryParameter

from etude.courseware.errors import (
    CourseUnpublishedError,
    LegacyManifestError,
    PublishRefusedError,
)
from etude.courseware.receiving import Receiver
from etude.courseware.remote_errors import PublicUrlMissingError, SubmissionInvalidError
from etude.courseware.submission import (
    COURSE_BYTES,
    COURSE_PART,
    MOST_BYTES,
    MOST_MODULES,
    PATH,
    Answer,
    Offer,
    Submission,
    WithdrawalSent,
    bundle_part,
    read_submission,
)
from etude.people.records import PUBLISHER
from etude.store.errors import DiskFull, StoreUnavailable
from etude.web.context import context_of
from etude.web.courseware import CourseId, PathVersion, number_of, withdraw_here
from etude.web.declared import Access, Body, declared
from etude.web.errors import MultipartInvalidError
from etude.web.multipart_bodies import MEDIA_TYPE, BodyPart, parts_of
from etude.web.services import HttpRequest, Services, services_of

UPLOAD_S: Final = 6 * 3600.0
"""As long may a publication take; a pause in it is bounded as in every body."""
_TAGS: Final = ["Courseware"]
Announced = Annotated[
    int, QueryParameter(name="bytes", ge=0, le=MOST_BYTES, description="How large it will be.")
]


@get(
    PATH,
    opt=declared(
        roles=("server",),
        needs=Access.PUBLISH_TOKEN,
        raises=(PublicUrlMissingError, DiskFull),
    ),
    tags=_TAGS,
)
async def offer_publication(request: HttpRequest, announced: Announced = 0) -> Offer:
    """Say whether a publication of this size would be taken, before it is sent."""
    services = services_of(request)
    _require_public_url(services)
    return await _receiver(services).offer(announced)


@post(
    PATH,
    status_code=200,
    opt=declared(
        roles=("server",),
        needs=Access.PUBLISH_TOKEN,
        raises=(
            PublicUrlMissingError,
            SubmissionInvalidError,
            MultipartInvalidError,
            PublishRefusedError,
            LegacyManifestError,
            StoreUnavailable,
        ),
        body=Body(
            media_types=(MEDIA_TYPE,),
            limit_bytes=MOST_BYTES,
            description="`course` (JSON), then `bundle-0`, `bundle-1`, … (docs/courseware.md).",
        ),
    ),
    tags=_TAGS,
)
async def receive_course(request: HttpRequest) -> Answer:
    """Publish a course that another installation froze; the same again is the same version."""
    services = services_of(request)
    _require_public_url(services)
    receiver = _receiver(services)
    announced = request.headers.get("content-length", "0")
    await receiver.offer(int(announced) if announced.isdecimal() and len(announced) < 16 else 0)  # noqa: PLR2004 - digits
    context_of(request.scope).more_body_s = UPLOAD_S
    async with parts_of(request, MOST_BYTES, 1 + MOST_MODULES) as parts:
        submission = await _submission(await anext(parts, None))
        reception = await receiver.begin(submission)
        async with reception:
            index = 0
            async for part in parts:
                if index == len(submission.modules) or part.name != bundle_part(index):
                    raise SubmissionInvalidError(reason=f"an unexpected part {part.name[:40]!r}")
                await reception.bundle(index, part.chunks)
                index += 1
            return await reception.finish()


@post(
    "/api/internal/courses/{course_id:str}/manifests/{version:str}/withdraw",
    status_code=204,
    opt=declared(
        roles=("server",),
        needs=Access.PUBLISH_TOKEN,
        raises=(CourseUnpublishedError, StoreUnavailable),
    ),
    tags=_TAGS,
)
async def receive_withdrawal(
    request: HttpRequest, course_id: CourseId, version: PathVersion, data: JSONBody[WithdrawalSent]
) -> None:
    """Take a version of a course away from everybody, as who published it wishes."""
    services = services_of(request)
    number = number_of(version)
    if number is None:
        raise CourseUnpublishedError(course=course_id, version=version[:20])
    await withdraw_here(services, course_id, number, data.reason, PUBLISHER)


async def _submission(part: BodyPart | None) -> Submission:
    if part is None or part.name != COURSE_PART:
        raise SubmissionInvalidError(reason=f"the first part is not {COURSE_PART!r}")
    content = bytearray()
    async for chunk in part.chunks:
        content += chunk
        if len(content) > COURSE_BYTES:
            raise SubmissionInvalidError(reason=f"{COURSE_PART!r} has over {COURSE_BYTES} bytes")
    return read_submission(bytes(content))


def _receiver(services: Services) -> Receiver:
    settings = services.settings
    return Receiver(
        services.database, settings.blobs, services.clock, legacy=settings.course_manifests
    )


def _require_public_url(services: Services) -> None:
    """Refuse courses on a server of its own that does not know where learners reach it."""
    settings = services.settings
    if settings.role == "server" and not settings.has_public_courseware_url:
        raise PublicUrlMissingError(variable="ETUDE_PUBLIC_URL")


route_handlers = [offer_publication, receive_course, receive_withdrawal]
