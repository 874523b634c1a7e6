"""One address, two readers: programs get JSON, browsers a page (RFC 9110 §12.5.1)."""

from collections.abc import Mapping
from typing import Final

from litestar import Response

from etude.web.services import HttpRequest

JSON: Final = "application/json"
HTML: Final = "text/html"
# A page of ours is one file: its own styles and nothing from anywhere else.
PAGE_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}


def wants_page(request: HttpRequest) -> bool:
    """Say whether a page is asked for rather than JSON."""
    return request.accept.best_match([JSON, HTML], JSON) == HTML


def page(
    content: str, locale: str, headers: Mapping[str, str] | None = None, *, status: int = 200
) -> Response[str]:
    """Return a page as an answer."""
    return Response(
        content,
        status_code=status,
        media_type=HTML,
        headers={**PAGE_HEADERS, "Content-Language": locale, **(headers or {})},
    )


def is_known(request: HttpRequest, etag: str) -> bool:
    """Say whether the caller has this version already (`If-None-Match`, RFC 9110 §13.1.2)."""
    sent = request.headers.get("if-none-match", "")
    return etag in {one.strip().removeprefix("W/") for one in sent.split(",")}
