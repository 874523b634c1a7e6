"""What the web says about a course: one seam, and SearXNG behind it.

Results are data: cleaned of markup, cut short, kept with their addresses. No result's address is
ever opened. Only the configured server is asked, without redirects.
"""

import asyncio
import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from etude.authoring.material import Language
from etude.authoring.model.errors import SearchFailedError
from etude.net import tls_context

TOTAL_S: Final = 15.0
MAX_BYTES: Final = 2 << 20
MOST_RESULTS: Final = 8
_LONGEST: Final = 500
_LONGEST_TITLE: Final = 200
_LONGEST_QUERY: Final = 300
_TAG: Final = re.compile(r"<[^>]{0,300}>")


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A page that a search found, and what the search says of it."""

    title: str
    url: str
    says: str


class _Result(msgspec.Struct, frozen=True):
    url: str = ""
    title: str = ""
    content: str | None = None


class _Results(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...]


async def search(server: str, query: str, language: Language) -> tuple[Source, ...]:
    """Return what a SearXNG server finds; it has to allow `format=json`.

    Raises:
        SearchFailedError: it is not there, or gives no results that can be read.
    """
    asked = {"q": query[:_LONGEST_QUERY], "format": "json", "language": language, "safesearch": "2"}
    try:
        async with (
            asyncio.timeout(TOTAL_S),
            httpx2.AsyncClient(
                follow_redirects=False, timeout=TOTAL_S, verify=tls_context()
            ) as client,
            client.stream("GET", f"{server}/search", params=asked) as response,
        ):
            if response.status_code != 200:  # noqa: PLR2004 - RFC 9110 §15.3.1
                raise SearchFailedError(reason=f"status {response.status_code}")
            body = bytearray()
            async for block in response.aiter_bytes():
                body += block
                if len(body) > MAX_BYTES:
                    raise SearchFailedError(reason="too long")
        found = msgspec.json.decode(bytes(body), type=_Results)
    except (TimeoutError, httpx2.HTTPError) as error:
        raise SearchFailedError(reason=type(error).__name__) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SearchFailedError(reason="no JSON of results") from None
    return tuple(_sources(found))


def _sources(found: _Results) -> Iterator[Source]:
    seen: set[str] = set()
    for one in found.results:
        if len(seen) == MOST_RESULTS:
            return
        if one.url not in seen and _is_web(one.url) and one.title.strip():
            seen.add(one.url)
            said = _plain(one.content or "", _LONGEST)
            yield Source(title=_plain(one.title, _LONGEST_TITLE), url=one.url, says=said)


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and len(url) <= _LONGEST


def _plain(text: str, most: int) -> str:
    bare = unescape(_TAG.sub(" ", text))
    shown = "".join(" " if unicodedata.category(one)[0] == "C" else one for one in bare)
    return " ".join(shown.split())[:most]
