"""What the audit log says of published courses: who published or withdrew which version."""

import re
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal

from etude.people import audit
from etude.people.records import Actor, Principal
from etude.store.work import UnitOfWork

_WORD: Final = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,63}")
Deed = Literal["course.published", "course.withdrawn"]


async def enter(
    work: UnitOfWork,
    deed: Deed,
    course_id: str,
    version: int,
    *,
    actor: Actor | Principal,
    now: datetime,
) -> None:
    """Enter what was done to a version of a course, in the transaction that does it.

    A withdrawal's reason, which is free text, stays out of the log.
    """
    # The log takes code words; ids of older systems may be none.
    course = course_id if _WORD.fullmatch(course_id) else sha256(course_id.encode()).hexdigest()
    await audit.record(
        work, actor, deed, subject=("manifest", version), now=now, detail={"course": course}
    )
