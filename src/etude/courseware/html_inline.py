"""Making an activity's page self-contained, strictly: what cannot be put into it is a finding.

The page is parsed as browsers parse it and written anew. `contained(contained(page)) ==
contained(page)`, which is also how a stored page is checked.
"""

import re
from collections.abc import Callable
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from etude.courseware.containment import CONTENT_POLICY, EARLIER_GUARDS, GUARD
from etude.courseware.css_inline import inline_css
from etude.courseware.script_scan import Kind, script_findings

LONGEST: Final = 8_000_000
"""Characters; the bound of `etude.classroom.fields.Html`."""
Report = Callable[[Kind, str], None]
Fetch = Callable[[str], str | None]
"""Returns a file of the classroom (`media/x.png`) as text or a `data:` URI; None: no such file."""

_MARK: Final = "data-etude"
_SHOWN: Final = 80
_ROUNDS: Final = 4
_FORBIDDEN: Final = frozenset(
    "applet base embed fencedframe frame frameset iframe object portal template".split()  # noqa: SIM905 - a list of words
)
_SOURCES: Final = frozenset({"src", "poster", "background", "data"})
_REFERENCES: Final = frozenset({"href", "xlink:href"})
_NAVIGATION: Final = frozenset({"action", "formaction", "ping", "manifest", "srcdoc"})
_ANIMATING: Final = frozenset({"animate", "animatemotion", "animatetransform", "set"})
_DATA: Final = re.compile(
    r"data:(?:(?:image|audio|video|font)/[a-z0-9.+-]+|application/(?:font|x-font)[a-z0-9.+-]*)"
    r"(?:;[a-z0-9=-]+)*,",
    re.IGNORECASE,
)
_SCRIPT_TYPES: Final = frozenset({"", "module", "text/javascript", "application/javascript"})
_NO_SCRIPT: Final = frozenset(
    {"application/json", "text/plain", "application/ld+json", "text/x-template"}
)
_LOCAL: Final = re.compile(r"(?:\./)?((?:media|audio)/[A-Za-z0-9._-]+)")


def contained(
    html: str, text_of: Fetch, data_of: Fetch, report: Report, *, guard: str = GUARD
) -> str:
    """Return the page with everything in it that it refers to, policy and guard first.

    Args:
        html: the page.
        text_of: gives a script or style sheet of the classroom.
        data_of: gives a picture, sound or font of the classroom as a `data:` URI.
        report: is told of each thing that is refused.
        guard: which guard is put in; a stored page is checked with its own (`guard_in`).
    """
    before, page = "", html
    for _ in range(_ROUNDS):
        before, page = page, _Page(page, text_of, data_of, report, guard).written()
        if page == before:
            return page
    report("unsafe", "HTML that browsers read in another way each time")
    return page


def guard_in(html: str) -> str:
    """Return the guard that a stored page begins with, of those there have been; else today's."""
    return next((one for one in EARLIER_GUARDS if _prefix(one) in html), GUARD)


class _Page:
    def __init__(
        self, html: str, text_of: Fetch, data_of: Fetch, report: Report, guard: str
    ) -> None:
        self._tree = LexborHTMLParser(html)
        self._prefix = _prefix(guard)
        self._text_of = text_of
        self._data_of = data_of
        self._report = report

    def written(self) -> str:
        root = self._tree.root
        if root is None:
            self._refuse("an empty page")
            return ""
        for node in _unwanted(root):
            node.decompose()
        for node in list(root.traverse(include_text=False)):
            self._element(node)
        head = self._tree.head
        body = (head.inner_html or "") if head is not None else ""
        if head is not None:
            head.inner_html = self._prefix + body
        return "<!DOCTYPE html>" + (root.html or "")

    def _element(self, node: LexborNode) -> None:
        tag = (node.tag or "").lower()
        if tag in _FORBIDDEN:
            self._refuse(f"<{tag}>")
        elif tag == "meta":
            if "http-equiv" in node.attributes:
                self._refuse(f'<meta http-equiv="{node.attributes["http-equiv"]}">')
        elif tag == "link":
            self._link(node)
            return
        elif tag == "script":
            self._script(node)
        elif tag == "style":
            node.inner_html = self._css(node.text(deep=True) or "")
        elif tag in _ANIMATING and "href" in (node.attributes.get("attributeName") or "").lower():
            self._refuse(f"<{tag}> of an address")
        self._attributes(node, tag)

    def _link(self, node: LexborNode) -> None:
        rel = (node.attributes.get("rel") or "").lower().split()
        href = node.attributes.get("href") or ""
        if "stylesheet" in rel:
            style = self._file(href, self._text_of)
            if style is not None and "</style" not in style.lower():
                _replace(node, f"<style>{self._css(style)}</style>")
                return
        self._report("asset", href[:_SHOWN] or "<link>")

    def _script(self, node: LexborNode) -> None:
        kind = (node.attributes.get("type") or "").strip().lower()
        if kind in _NO_SCRIPT:
            return
        if kind not in _SCRIPT_TYPES:
            self._refuse(f'<script type="{kind}">')
            return
        source = node.text(deep=True) or ""
        if "src" in node.attributes:
            address = node.attributes["src"] or ""
            found = self._file(address, self._text_of)
            del node.attrs["src"]
            if found is None or "</script" in found.lower() or "<!--" in found:
                self._report("asset", address[:_SHOWN] or "<script src>")
                return
            source = found
            _replace(node, f"<script{' type=module' if kind == 'module' else ''}>{source}</script>")
        self._scan(source)

    def _attributes(self, node: LexborNode, tag: str) -> None:
        for name, value in list(node.attributes.items()):
            key, text = name.lower(), (value or "").strip()
            if key.startswith("on"):
                self._scan(text)
            elif key == "style":
                node.attrs[name] = self._css(text)
            elif key in _NAVIGATION:
                if text:
                    self._refuse(f'{key}="{text}"')
            elif key in {"srcset", "imagesrcset"}:
                node.attrs[name] = self._srcset(text)
            elif key in _SOURCES and tag != "script" and text:
                node.attrs[name] = self._asset(text)
            elif key in _REFERENCES and text and tag != "link":
                node.attrs[name] = self._reference(tag, text)
            elif key not in _READ_ONLY and "url(" in text.lower():
                node.attrs[name] = self._css(text)

    def _reference(self, tag: str, text: str) -> str:
        if text.startswith("#"):
            return text
        if tag in {"a", "area"}:
            self._refuse(f'<{tag} href="{text}">')
            return "#"
        return self._asset(text)

    def _srcset(self, text: str) -> str:
        parts = [part.split(None, 1) for part in re.split(r",\s+", text) if part.strip()]
        return ", ".join(" ".join([self._asset(first), *rest]) for first, *rest in parts)

    def _asset(self, reference: str) -> str:
        found = self._resolved(reference)
        if found is None:
            self._report("asset", reference[:_SHOWN])
        return found or "data:,"

    def _resolved(self, reference: str) -> str | None:
        if reference.startswith("#") or reference == "data:," or _DATA.match(reference):
            return reference
        return self._file(reference, self._data_of)

    def _file(self, reference: str, fetch: Fetch) -> str | None:
        match = _LOCAL.fullmatch(reference.strip())
        return fetch(match[1]) if match else None

    def _css(self, source: str) -> str:
        return inline_css(
            source, self._resolved, lambda found: self._report("asset", found[:_SHOWN])
        )

    def _scan(self, source: str) -> None:
        for kind, found in script_findings(source):
            self._report(kind, found)

    def _refuse(self, found: str) -> None:
        self._report("unsafe", found[:_SHOWN])


_READ_ONLY: Final = frozenset({"alt", "aria-label", "class", "content", "id", "title", "value"})


def _prefix(guard: str) -> str:
    return (
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}" {_MARK}="">'
        f'<script {_MARK}="">{guard}</script>'
    )


def _unwanted(root: LexborNode) -> list[LexborNode]:
    """Return what goes: our own parts, which are added anew, and what no page needs.

    Where scripts run, `noscript` is never shown; icons of pages in frames are not either.
    """
    found = [*root.css("noscript"), *root.css(f"[{_MARK}]")]
    return found + [
        one
        for one in root.css("link")
        if "icon" in (one.attributes.get("rel") or "").lower().split()
    ]


def _replace(node: LexborNode, html: str) -> None:
    """Put other markup in the place of a node."""
    made = LexborHTMLParser(f"<body>{html}").body
    inner = None if made is None else made.first_child
    if inner is not None:
        node.replace_with(inner)
