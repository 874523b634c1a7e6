"""Which language an `Accept-Language` header gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.i18n import LOCALES, negotiate


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        (None, "en"),
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("zh-TW", "zh-CN"),
        ("en;q=0.5, zh;q=0.9", "zh-CN"),
        ("fr, *;q=0.1", "en"),
        ("zh;q=0, en", "en"),
        ("fr", "en"),
        ("zh;q=high, en;q=0.1", "en"),
    ],
)
def test_the_heaviest_known_language_wins(header: str | None, locale: str) -> None:
    """Weights decide; a weight of zero excludes; unreadable wishes are passed over."""
    assert negotiate(header) == locale


@given(st.text(max_size=300))
def test_no_header_breaks_it(header: str) -> None:
    """Whatever a client sends, the answer is a language that exists."""
    assert negotiate(header) in LOCALES
