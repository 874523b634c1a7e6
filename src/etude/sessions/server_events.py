"""Events that the server itself adds to a session: reviews, metrics (`docs/rules.md 9`).

They go through ingest like every other, in the name of the principal whose session it is; who
asked for them is for the audit log.
"""

from collections.abc import Sequence

from etude.people.records import Principal, PrincipalKind
from etude.sessions.batch import server_batch
from etude.sessions.records import SessionRow, Upload


def server_upload(session: SessionRow, lines: Sequence[bytes]) -> Upload:
    """Return an upload of lines that this server made, for `etude.sessions.ingest.Ingest.receive`.

    Raises:
        LineError: the first that breaks a rule.
    """
    kind: PrincipalKind = "learner" if session.principal_kind == "learner" else "device"
    return Upload(
        principal=Principal(
            kind=kind, key=session.principal_key, id="", scopes=frozenset(), token_key=None
        ),
        device_key=session.device_key,
        batch=server_batch(lines, session.session_id),
    )
