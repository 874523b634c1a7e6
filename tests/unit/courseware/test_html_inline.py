"""Pages of activities: self-contained or refused, and the same when they are read again."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.courseware.containment import CONTENT_POLICY, EARLIER_GUARDS, GUARD, SANDBOX
from etude.courseware.html_inline import contained, guard_in

FILES = {
    "media/a.js": "const x = 1 < 2;",
    "media/a.css": "b{background:url(media/p.png)}",
    "media/p.png": "data:image/png;base64,AA==",
}


def page(html: str) -> tuple[str, list[tuple[str, str]]]:
    found: list[tuple[str, str]] = []
    made = contained(html, FILES.get, FILES.get, lambda kind, what: found.append((kind, what)))
    return made, found


def test_everything_local_is_put_in() -> None:
    """Scripts, styles, pictures and what styles refer to end up inside the page."""
    made, found = page(
        "<link rel=stylesheet href=media/a.css><script src=media/a.js></script>"
        "<img src=media/p.png srcset='media/p.png 2x'><p style='background:url(media/p.png)'>"
    )
    assert found == []
    assert "media/" not in made
    assert made.count("data:image/png") == 4
    assert "const x = 1 < 2;" in made


def test_policy_comes_first() -> None:
    """Policy and guard stand before everything that the page brings."""
    made, _ = page("<title>t</title><script>let a = 1</script>")
    assert made.index(CONTENT_POLICY) < made.index("localStorage") < made.index("<title>")
    assert SANDBOX == "allow-scripts"


GUARDS = [
    "53dcc71986f549e95f6ddfcae2e9de8eb89510d7a5bf2d7423a672271b9d6b6e",
    "4d50b9275bcb4f9dc9755aaf891b16e824f9bb6533cb3825ac3f53107387d664",
]
"""SHA-256 of every guard that pages were ever published with, the oldest first."""


def test_guards_of_published_pages_are_kept() -> None:
    """Whoever changes the guard keeps the one before: its bundles are checked with it."""
    digests = [hashlib.sha256(one.encode()).hexdigest() for one in (*EARLIER_GUARDS, GUARD)]
    assert digests == GUARDS


@pytest.mark.parametrize("guard", [*EARLIER_GUARDS, GUARD])
def test_a_page_is_checked_with_its_own_guard(guard: str) -> None:
    """It comes out as it went in, whichever guard it has; a guard of nobody's does not."""
    made = contained("<p>t</p>", FILES.get, FILES.get, lambda *_: None, guard=guard)
    assert guard_in(made) == guard
    again = contained(made, FILES.get, FILES.get, lambda *_: None, guard=guard_in(made))
    assert again == made
    other = made.replace("localStorage", "localStorage2", 1)
    assert contained(other, FILES.get, FILES.get, lambda *_: None, guard=guard_in(other)) != other


REFUSED = [
    "<img src=https://example.org/a.png>",
    "<img src=//example.org/a.png>",
    "<img src=media/none.png>",
    "<img src='data:text/html,x'>",
    "<img srcset='https://example.org/a.png 2x'>",
    "<video poster=https://example.org/a.png></video>",
    "<video><source src=https://example.org/a.mp4><track src=x.vtt></video>",
    "<link rel=stylesheet href=https://example.org/a.css>",
    "<link rel=preconnect href=https://example.org>",
    "<script src=https://example.org/a.js></script>",
    "<script type=importmap>{}</script>",
    "<script type=module>import a from './a.js'</script>",
    "<script>import('https://example.org/a.js')</script>",
    "<style>@import 'a.css';</style>",
    "<style>a{background:url(https://example.org/a.png)}</style>",
    "<style>a{background:image-set('https://example.org/a.png' 1x)}</style>",
    r"<style>a{background:\75rl(https://example.org/a.png)}</style>",
    "<p style='background:url(https://example.org/a.png)'>",
    "<svg><image href=https://example.org/a.png /></svg>",
    "<svg><use xlink:href=https://example.org/a.svg#b /></svg>",
    "<svg><rect fill='url(https://example.org/a.svg#b)'/></svg>",
    "<svg><a><animate attributeName=href to=https://example.org /></a></svg>",
    "<iframe src=a></iframe>",
    "<iframe srcdoc=a></iframe>",
    "<object data=a></object>",
    "<embed src=a>",
    "<base href=https://example.org>",
    "<template><img src=https://example.org/a.png></template>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<meta http-equiv=content-security-policy content=''>",
    "<a href=https://example.org>away</a>",
    "<a href='javascript:x()'>away</a>",
    "<a href='#' ping=https://example.org>away</a>",
    "<form action=https://example.org></form>",
    "<button formaction=https://example.org></button>",
    "<script>fetch('/api/v1/sessions')</script>",
    "<script>new WebSocket('wss://example.org')</script>",
    "<script>new XMLHttpRequest()</script>",
    "<script>navigator.sendBeacon('/x')</script>",
    "<script>new RTCPeerConnection()</script>",
    "<script>new Worker('x')</script>",
    "<script>parent.document.title</script>",
    "<script>top.location = 'x'</script>",
    "<script>window.open('x')</script>",
    "<script>indexedDB.open('x')</script>",
    "<script>document.cookie</script>",
    "<script>location.href = 'x'</script>",
    "<script>location = 'x'</script>",
    "<script>location.assign('x')</script>",
    "<script>const u = 'https://example.org/a'</script>",
    "<p onclick=\"location.href='x'\">",
]


@pytest.mark.parametrize("html", REFUSED)
def test_what_reaches_out_is_refused(html: str) -> None:
    """Network, parent, storage and other pages are refused, wherever they are asked for."""
    assert page(html)[1]


@pytest.mark.parametrize(
    "html",
    [
        "<a href=#part>down</a>",
        "<script>parent.postMessage({kind: 'ready'}, '*')</script>",
        "<script>localStorage.setItem('a', 1)</script>",
        "<script>document.createElementNS('http://www.w3.org/2000/svg', 'g')</script>",
        "<script>// see https://example.org\nlet a</script>",
        '<script type=application/json id=widget-config>{"url": "x"}</script>',
        "<svg><linearGradient id=g /><rect fill='url(#g)'/></svg>",
        "<p>fetch('x')</p>",
        "<form><button>ok</button></form>",
        "<p>x</p><noscript><img src=https://example.org/a.png></noscript>",
        "<link rel=icon href=https://example.org/a.ico>",
    ],
)
def test_what_stays_inside_is_kept(html: str) -> None:
    """What an activity needs is no finding."""
    assert page(html)[1] == []


PIECES = st.sampled_from(
    [
        *REFUSED,
        "<p>",
        "</p>",
        "<table><b>",
        "<svg>",
        "<style>",
        "</style>",
        "<select><option>",
        "<math><mi>",
        "text &amp; more",
        "<!-- c -->",
        "<![CDATA[x]]>",
        "<title>",
        "<textarea>",
        "\n",
        "</body>",
    ]
)


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_page_without_findings_is_a_fixed_point(html: str) -> None:
    """A page that was made self-contained stays as it is when it is made so again."""
    made, found = page(html)
    if not found:
        again: list[str] = []
        assert (
            contained(made, lambda _: None, lambda _: None, lambda _, what: again.append(what))
            == made
        )
        assert again == []


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_text_breaks_it(html: str) -> None:
    """Any text is a page or a finding, never a crash."""
    page(html)
