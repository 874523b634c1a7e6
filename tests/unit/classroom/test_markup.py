"""HTML: what is read in it, and what slides may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.classroom.markup import cleaned, first_unsafe, headings, is_web_link, visible_text

SNIPPETS = st.lists(
    st.sampled_from(
        [
            *(
                "<b>",
                "</b>",
                "<p style='color:red;position:fixed'>",
                "</p>",
                "<script>",
                "</script>",
            ),
            *("<", ">", '"', "'", "=", " ", "/", "&lt;", "&#60;", "<svg>", "<img src=x onerror=y>"),
            *("<!--", "-->", "<a href='javascript:x'>", "</a>", "<style>", "</style >", "<math>"),
            *('<a href="https://x.example/?a=1&amp;b=2">', "<title>", "text", "é", "\0", "<x", "`"),
            "<b a b='c>",
        ]
    ),
    max_size=12,
).map("".join)


@given(SNIPPETS | st.text())
def test_what_is_cleaned_is_safe(source: str) -> None:
    """Cleaning leaves nothing that slides may not have, and cleaning again changes nothing."""
    once = cleaned(source)
    assert first_unsafe(once) is None
    assert cleaned(once) == once


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"])))
def test_text_survives_cleaning(words: str) -> None:
    """Words that are no markup are read the same after cleaning."""
    written = words.replace("&", "&amp;").replace("<", "&lt;")
    assert visible_text(cleaned(written)) == visible_text(written) == " ".join(words.split())


@pytest.mark.parametrize(
    "source",
    [
        "<script>x</script>",
        "<img src=x onerror=y>",
        "<p onclick='x()'>a</p>",
        '<p onclick="x()">a</p>',
        '<a href="javascript:x">a</a>',
        '<a href="java&#115;cript:x">a</a>',
        '<a href="data:text/html,x">a</a>',
        '<p style="background:url(//x)">a</p>',
        '<p style="position:fixed">a</p>',
        '<p style="background-color:url(//x)">a</p>',
        '<p style="color:expression(x)">a</p>',
        "<iframe srcdoc='x'></iframe>",
        "<!-- x -->",
        "<p",
        "a < b",
        "<p title='x'>a</p>",
        '<svg><path d="M0 0"/><use href="//x"/></svg>',
        '<p class="a"style="color:red">a</p>',
        "<style>p{}</style>",
        "<math><mtext><mglyph>",
        "<template>x</template>",
        "<input autofocus onfocus=x>",
    ],
)
def test_what_slides_may_not_have(source: str) -> None:
    """Scripts, handlers, addresses, foreign tags, and whatever two browsers could read apart."""
    assert first_unsafe(source) is not None
    assert first_unsafe(cleaned(source)) is None


@pytest.mark.parametrize(
    "source",
    [
        "",
        "plain",
        '<p style="text-align: center"><strong>One</strong><br>two</p>',
        '<p><span style="font-size: 24px; color: rgb(1, 2, 3)">x</span></p>',
        '<ul><li>a &lt; b</li><li><a href="https://x.example/a?b=1&amp;c">c</a></li></ul>',
        '<span class="katex"><math xmlns="http://www.w3.org/1998/Math/MathML"><mi>x</mi></math></span>',
        '<svg width="1em" height="1em" viewBox="0 0 10 10"><path d="M0 0L1,1z"></path></svg>',
    ],
)
def test_what_slides_may_have(source: str) -> None:
    """Emphasis, lists, links to the web, formulas."""
    assert first_unsafe(source) is None
    assert visible_text(cleaned(source)) == visible_text(source)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("<p>One</p><p>two</p>", "One two"),
        ("T<b>i</b>des", "Tides"),
        ("a<br>b", "a b"),
        ("<script>var a = '<p>x</p>'</script>y", "y"),
        ("<style>p{}</style><title>t</title>x", "x"),
        ("<!-- secret -->x<!doctype html>", "x"),
        ("a &amp; b&nbsp;c", "a & b c"),
        ('<img alt="The Moon" src="x">', "The Moon"),
        ('<button aria-label="Go">→</button>', "Go →"),
        ('<input type="submit" value="Send"><input type="range" value="5">', "Send"),
        ("<textarea>draft</textarea>", "draft"),
        ("<template><li>later</li></template>", "later"),
        ("a < b", "a < b"),
        ("<script>never closed", ""),
        ("<p>never closed", "never closed"),
        ("<SCRIPT>x</ScRiPt >y", "y"),
    ],
)
def test_what_is_read(source: str, read: str) -> None:
    """Words and what a screen reader says; no scripts, styles or comments."""
    assert visible_text(source) == read


@given(SNIPPETS, st.sampled_from(["color:red", "font-size:9px", "width:10%"]))
def test_a_style_changes_no_word(source: str, style: str) -> None:
    """The same words around which another style stands are the same words."""
    assert visible_text(f"<p>{source}") == visible_text(f'<p style="{style}">{source}')


def test_headings_are_found() -> None:
    """The first three levels, each whole."""
    source = "<h1>A <b>b</b></h1><p>c</p><h2>d</h2><h4>e</h4><h3></h3><h2>never closed"
    assert list(headings(source)) == ["A b", "d"]


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ("https://x.example/a", True),
        ("mailto:a@x.example", True),
        ("HTTP://x.example", True),
        ("javascript:x", False),
        ("//x.example", False),
        ("/a", False),
        ("https://x.example/\n", False),
        ("https://", False),
    ],
)
def test_links_lead_to_the_web(target: str, is_one: bool) -> None:  # noqa: FBT001 - a table of cases
    """Only whole addresses of http, https and mailto."""
    assert is_web_link(target) is is_one
