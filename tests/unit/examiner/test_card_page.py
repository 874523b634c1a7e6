import re
from datetime import UTC, datetime

import pytest

from etude.examiner.card_links import CardLinks, token_hash
from etude.examiner.card_page import render_card, render_gone
from etude.examiner.cards import CardContent, JourneyProgress, OpenCard
from etude.examiner.repository import CardRow
from etude.examiner.serving_errors import CardRevokedError

MADE = datetime(2026, 9, 1, 8, tzinfo=UTC)
URL = "https://etude.example.org/cards/abc"


def card(count: int = 0, progress: JourneyProgress | None = None, *highlights: str) -> OpenCard:
    content = CardContent(
        recap_highlights=list(highlights), uncertainty_count=count, journey_progress=progress
    )
    return OpenCard(content=content, made_at=MADE, expires_at=MADE.replace(month=12))


def words(page: str) -> str:
    """The page as it is read: without markup, styles and what keeps dates together."""
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(text.replace("\u2060", "").split())


@pytest.mark.parametrize(
    ("count", "locale", "said"),
    [
        (0, "en", "Nothing was uncertain."),
        (1, "en", "One moment was uncertain"),
        (3, "en", "3 moments were uncertain"),
        (3, "zh-CN", "有 3 处不确定"),
    ],
)
def test_what_was_not_sure_is_said_plainly(count: int, locale: str, said: str) -> None:
    """In each language, with the right number; the page names its language."""
    page = render_card(card(count), URL, locale)
    assert said in words(page)
    assert f'<html lang="{locale}">' in page


def test_a_page_shows_what_it_was_given_and_runs_nothing() -> None:
    """Highlights are text whatever they hold; the journey's numbers; until when; a QR code."""
    progress = JourneyProgress(sessions=1, minutes=42.5, last_metric=0.91)
    page = render_card(card(0, progress, "<script>alert(1)</script>"), URL, "en")
    assert "<script" not in page
    said = words(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in said
    assert "session 1 minutes 42.5 latest 0.91" in said
    assert "2026-12-01" in said
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is loaded from elsewhere


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(1.04, "1 minute"), (1.06, "1.1 minutes"), (1234567.8, "1234567.8 minutes")],
)
def test_numbers_are_written_as_people_write_them(minutes: float, said: str) -> None:
    """Never as 1.23457e+06; one minute is what is shown as one."""
    page = render_card(card(0, JourneyProgress(minutes=minutes, last_metric=2500000.5)), URL, "en")
    number, _, unit = said.partition(" ")
    assert f"<dt>{unit}</dt><dd>{number}</dd>" in page
    assert "<dd>2500000.5</dd>" in page


@pytest.mark.parametrize(("locale", "said"), [("en", "QR code"), ("zh-CN", "二维码")])
def test_the_code_says_what_it_is(locale: str, said: str) -> None:
    """To whoever cannot see it."""
    assert f'role="img" aria-label="{said}' in render_card(card(), URL, locale)


def test_a_card_without_highlights_says_so() -> None:
    """No empty list, no journey where nothing is known of one."""
    said = words(render_card(card(), URL, "en"))
    assert "No highlights this time." in said
    assert "journey" not in said.lower()


def test_a_card_that_is_gone_says_why() -> None:
    """And shows nothing else."""
    said = words(render_gone(CardRevokedError(), "zh-CN"))
    assert "这张卡片已被收回。" in said
    assert "做得好的地方" not in said


def test_an_address_is_found_again_with_any_of_the_keys_and_only_with_them() -> None:
    """The hash alone leads nowhere; a key that was replaced still does."""
    old, new = CardLinks("https://e.org", [b"o" * 32]), CardLinks("https://e.org", [b"n" * 32])
    row = CardRow(
        card_id="c1",
        session_key=1,
        token_sha256=token_hash(old.token("c1")),
        content=b"{}",
        created_us=0,
        expires_us=1,
    )
    assert old.url_of(row) == f"https://e.org/cards/{old.token('c1')}"
    assert len(old.token("c1")) == 43
    assert new.url_of(row) is None
    assert CardLinks("https://e.org", [b"n" * 32, b"o" * 32]).url_of(row) == old.url_of(row)
    without = CardLinks("https://e.org")
    assert without.token("c1") != without.token("c1")
