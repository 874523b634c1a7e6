"""Digests of what a report was made from: the same for the same meaning, on every machine."""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from etude.events.canonical import canonical
from etude.events.model import Event
from etude.events.ndjson import to_fields
from etude.rubric.placing import ordered


def events_digest(events: Iterable[Event]) -> str:
    """Return the sha256 over a session's events: canonical lines (RFC 8785) in its order.

    Spelling, order of arrival and repetition do not count; anything else does.
    """
    found = hashlib.sha256()
    for event in ordered(events):
        found.update(canonical(to_fields(event)) + b"\n")
    return found.hexdigest()


def digest_of(record: Any) -> str:  # noqa: ANN401 - any record or JSON value
    """Return the sha256 of a record's canonical JSON."""
    return hashlib.sha256(canonical(msgspec.to_builtins(record))).hexdigest()
