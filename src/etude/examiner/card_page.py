"""A summary card as a page: one file, no script, nothing but what the card was given."""

from datetime import UTC, datetime
from typing import Final

import segno

from etude.errors import EtudeError
from etude.examiner.cards import JourneyProgress, OpenCard
from etude.examiner.templates import template
from etude.i18n import text

_QUIET_MODULES: Final = 4
_UNBROKEN_HYPHEN: Final = "\u2060-\u2060"  # a date does not go over two lines


def render_card(card: OpenCard, url: str, locale: str) -> str:
    """Return the page of a card; `url` is its own address, for the QR code."""
    content, progress = card.content, card.content.journey_progress
    return template("card.html").render(
        locale=locale,
        highlights=content.recap_highlights,
        uncertain=_uncertain(content.uncertainty_count, locale),
        is_certain=content.uncertainty_count == 0,
        facts=[] if progress is None else _facts(progress, locale),
        made=_day(card.made_at),
        expires=_day(card.expires_at).replace("-", _UNBROKEN_HYPHEN),
        qr=_qr(url),
        gone=None,
        t=lambda key, **params: text(f"card.{key}", locale, **params),
    )


def render_gone(error: EtudeError, locale: str) -> str:
    """Return the page that stands in the place of a card that cannot be opened."""
    return template("card.html").render(
        locale=locale,
        gone=text(f"error.{error.code}", locale),
        t=lambda key, **params: text(f"card.{key}", locale, **params),
    )


def _uncertain(count: int, locale: str) -> str:
    key = {0: "zero", 1: "one"}.get(count, "many")
    return text(f"card.uncertain.{key}", locale, number=count)


def _facts(progress: JourneyProgress, locale: str) -> list[tuple[str, str]]:
    """Return `(number, what it counts)` of what is known of the journey."""
    facts = []
    if progress.sessions is not None:
        facts.append(_counted("sessions", progress.sessions, locale))
    if progress.minutes is not None:
        facts.append(_counted("minutes", progress.minutes, locale))
    if progress.last_metric is not None:
        shown = progress.last_metric
        said = f"{shown:.10g}" if isinstance(shown, int | float) else shown
        facts.append((said, text("card.last_metric", locale)))
    return facts


def _counted(what: str, count: float, locale: str) -> tuple[str, str]:
    number = f"{count:.1f}".removesuffix(".0")
    return number, text(f"card.{what}.{'one' if number == '1' else 'many'}", locale)


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def _qr(url: str) -> str:
    """Return the QR code of an address as an SVG element."""
    return segno.make(url, error="m", micro=False).svg_inline(
        scale=1, border=_QUIET_MODULES, omitsize=True, dark="#1d2326", light="#ffffff"
    )
