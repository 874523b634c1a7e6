"""Fetching a model from the address in its list, when a person asks for it; never by itself."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2

from etude.files import Files, crash_point
from etude.speech.errors import (
    ModelChangedError,
    ModelNotFetchableError,
    SpeechServerError,
)
from etude.speech.models import Models

LARGEST_BYTES: Final = 4 * 1024 * 1024 * 1024
_URL: Final = "url:"
_BLOCK: Final = 1 << 20
_REDIRECTS: Final = 5
_OK: Final = 200


def fetch_model(
    models: Models,
    model_id: str,
    files: Files,
    *,
    wire: httpx2.BaseTransport | None = None,
) -> list[str]:
    """Fetch what is missing of a model into its folder; a file stands there whole or not at all.

    Returns:
        The names of the files that were fetched.

    Raises:
        ModelUnknownError: no list names it.
        ModelNotFetchableError: its source is no address, or there is no data folder.
        ModelChangedError: what came is not what the list names; it is thrown away.
        SpeechServerError: the address does not give it.
        OSError: the disk does not take it.
    """
    card = models.card(model_id)
    folder = models.folder_of(card)
    if not card.source.startswith(_URL) or folder is None:
        raise ModelNotFetchableError(model=card.id, source=card.source)
    base = card.source.removeprefix(_URL).rstrip("/")
    fetched = []
    with httpx2.Client(follow_redirects=True, max_redirects=_REDIRECTS, transport=wire) as http:
        for name, digest in card.files.items():
            target = folder / name
            if target.is_file() and _sha256(target) == digest:
                continue
            files.make_folder(target.parent)
            part = target.with_name(f"{target.name}.part")
            found = _download(http, f"{base}/{name}", part)
            if found != digest:
                files.remove(part)
                raise ModelChangedError(model=card.id, file=name, expected=digest, found=found)
            crash_point("speech.model.fetched")
            files.rename(part, target)
            files.sync_folder(target.parent)
            fetched.append(name)
    return fetched


def _download(http: httpx2.Client, address: str, part: Path) -> str:
    """Write what an address gives to a file; return its SHA-256."""
    digest = hashlib.sha256()
    try:
        with http.stream("GET", address) as answer, part.open("wb") as file:
            if answer.status_code != _OK:
                reason = f"HTTP {answer.status_code}"
                raise SpeechServerError(server=address, kind="answer", reason=reason)
            for block in _bounded(answer, address):
                digest.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SpeechServerError(
            server=address, kind="connect", reason=type(error).__name__
        ) from error
    return digest.hexdigest()


def _bounded(answer: httpx2.Response, address: str) -> Iterator[bytes]:
    read = 0
    for block in answer.iter_bytes(_BLOCK):
        read += len(block)
        if read > LARGEST_BYTES:
            reason = f"more than {LARGEST_BYTES} bytes"
            raise SpeechServerError(server=address, kind="too_large", reason=reason)
        yield block


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
