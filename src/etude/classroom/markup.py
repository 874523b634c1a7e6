"""HTML: what a learner reads in it, and the few tags that slides may have.

The reader is our own, because hashes stand on it: the standard library's changes its mind between
versions. It takes time linear in the length, whatever the text.

`first_unsafe` judges by a grammar that every browser reads alike: what does not fit is refused, so
a browser's repairs cannot make something else of it. `cleaned` writes nothing but that grammar.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ATTRIBUTE: Final = re.compile(
    r"[\s/]*([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*)))?"
)
_END_OF_TAG: Final = re.compile(r"[\s/=]*>?")
_NAME: Final = re.compile(r"[A-Za-z][^\s/>]*")
_RAW: Final = frozenset(
    {"script", "style", "xmp", "iframe", "noembed", "noframes", "noscript", "title", "textarea"}
)
_READABLE_RAW: Final = frozenset({"xmp", "textarea"})
_BLOCKS: Final = _names(
    "address article aside blockquote body br button dd details div dl dt fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hr html input label legend li main nav ol option"
    " output p pre section select summary table tbody td tfoot th thead tr ul"
)
_SPOKEN: Final = ("alt", "aria-label", "placeholder", "title", "label")
_BUTTONS: Final = frozenset({"button", "submit", "reset"})

Kind = Literal["text", "open", "close"]


class Token(NamedTuple):
    """A piece of HTML: text (its entities resolved), or a tag by its name in lower case."""

    kind: Kind
    text: str
    attributes: Mapping[str, str] = {}


def tokens(source: str) -> Iterator[Token]:
    """Yield the pieces of `source`; comments, declarations, scripts and styles are left out."""
    at = 0
    while at < len(source):
        start = source.find("<", at)
        end = len(source) if start < 0 else start
        if end > at:
            yield Token("text", html.unescape(source[at:end]))
        if start < 0:
            return
        found, at = _markup_at(source, start)
        yield from found


def _markup_at(source: str, start: int) -> tuple[list[Token], int]:
    """Read what begins with the `<` at `start`; return its tokens and where it ends."""
    if source.startswith("<!--", start):
        return [], _after(source, "-->", start + 4)
    if source.startswith(("<!", "<?"), start):
        return [], _after(source, ">", start)
    closing = source.startswith("</", start)
    name = _NAME.match(source, start + 1 + closing)
    if name is None:
        return ([], _after(source, ">", start)) if closing else ([Token("text", "<")], start + 1)
    tag = name.group().lower()
    if closing:
        return [Token("close", tag)], _after(source, ">", name.end())
    attributes, end = _attributes(source, name.end())
    found = [Token("open", tag, attributes)]
    if tag in _RAW:
        closed = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE).search(source, end)
        inner = source[end : closed.start() if closed else len(source)]
        end = _after(source, ">", closed.end()) if closed else len(source)
        if tag in _READABLE_RAW:
            found.append(Token("text", html.unescape(inner)))
        found.append(Token("close", tag))
    return found, end


def _attributes(source: str, at: int) -> tuple[dict[str, str], int]:
    found: dict[str, str] = {}
    while match := _ATTRIBUTE.match(source, at):
        value = next((one for one in match.groups()[1:] if one is not None), "")
        found.setdefault(match.group(1).lower(), html.unescape(value))
        at = match.end()
    end = _END_OF_TAG.match(source, at)
    return found, end.end() if end else at


def _after(source: str, mark: str, start: int) -> int:
    found = source.find(mark, start)
    return len(source) if found < 0 else found + len(mark)


def visible_text(source: str) -> str:
    """Return what a learner reads, or a screen reader says, with white space folded."""
    parts: list[str] = []
    for kind, text, attributes in tokens(source):
        if kind == "text":
            parts.append(text)
            continue
        if text in _BLOCKS:
            parts.append(" ")
        if kind == "open":
            said = [attributes[name] for name in _SPOKEN if attributes.get(name)]
            if text == "input" and attributes.get("type", "").lower() in _BUTTONS:
                said.append(attributes.get("value", ""))
            parts += [f" {one} " for one in said]
    return " ".join("".join(parts).split())


def headings(source: str) -> Iterator[str]:
    """Yield the text of each heading (`h1` to `h3`)."""
    inside: list[str] | None = None
    for kind, text, _ in tokens(source):
        if text in {"h1", "h2", "h3"} and kind != "text":
            if inside is not None and (said := " ".join("".join(inside).split())):
                yield said
            inside = [] if kind == "open" else None
        elif kind == "text" and inside is not None:
            inside.append(text)


_TEXT_TAGS: Final = (
    "a b blockquote br code div em font h1 h2 h3 h4 h5 h6 hr i li mark ol p pre s small span strong"
    " sub sup u ul"
)
_MATH_TAGS: Final = (
    "annotation math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt"
    " mstyle msub msubsup msup mtable mtd mtext mtr munder munderover semantics svg path line"
)
_TAGS: Final = _names(f"{_TEXT_TAGS} {_MATH_TAGS}")
_VOID: Final = frozenset({"br", "hr"})
_PLAIN: Final = re.compile(r"^[\w .,:/%#+()-]{0,200}$(?!\n)")
_PATH: Final = re.compile(r"^[MmLlHhVvCcSsQqTtAaZz0-9eE+\-., ]{0,20000}$(?!\n)")
_LINK: Final = re.compile(r"^(https?://|mailto:)[^\s<>\"'\\`]{1,2000}$(?!\n)", re.IGNORECASE)
_PLAIN_ATTRIBUTES: Final = _names(
    "accent accentunder align aria-hidden class color columnalign columnspacing data-list depth"
    " dir displaystyle encoding face fence height lang largeop linethickness lspace mathcolor"
    " mathsize mathvariant maxsize minsize movablelimits notation preserveaspectratio rowspacing"
    " rspace scriptlevel separator size start stretchy symmetric viewbox voffset width x1 x2 y1 y2"
    " stroke-width"
)
_NAMESPACES: Final = frozenset({"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"})
_PROPERTIES: Final = _names(
    "background-color border-bottom-width border-color border-right-width border-style"
    " border-top-width border-width bottom color display font-family font-size font-style"
    " font-weight height left letter-spacing line-height margin margin-bottom margin-left"
    " margin-right margin-top max-width min-width padding padding-bottom padding-left padding-right"
    " padding-top right text-align text-decoration text-decoration-line text-indent top"
    " vertical-align white-space width word-spacing"
)
_STYLE_VALUE: Final = re.compile(r"^(?:[#\w .,%'+-]|(?:rgb|hsl)a?\([0-9., %/]*\)){0,200}$(?!\n)")
_STRICT_TAG: Final = re.compile(
    r"<(/?)([a-z][a-z0-9]*)((?: [a-z][a-z0-9-]*=\"[^\"<>]*\")*) ?/?>", re.IGNORECASE
)
_STRICT_ATTRIBUTE: Final = re.compile(r" ([A-Za-z][A-Za-z0-9-]*)=\"([^\"<>]*)\"")


def first_unsafe(source: str) -> str | None:
    """Return the first thing that slides may not have, shortened; None if there is none."""
    at = source.find("<")
    while at >= 0:
        match = _STRICT_TAG.match(source, at)
        if match is None or match.group(2).lower() not in _TAGS:
            return source[at : at + 60]
        for name, value in _STRICT_ATTRIBUTE.findall(match.group(3)):
            if not _allowed(match.group(2).lower(), name.lower(), html.unescape(value)):
                return f'{name}="{value}"'[:60]
        at = source.find("<", match.end())
    return None


def cleaned(source: str) -> str:
    """Return `source` with nothing but what slides may have; every tag is closed."""
    parts: list[str] = []
    unclosed: list[str] = []
    depth: Counter[str] = Counter()
    for kind, text, attributes in tokens(source):
        if kind == "text":
            parts.append(html.escape(text, quote=False))
        elif text not in _TAGS:
            continue
        elif kind == "open":
            kept = "".join(
                f' {name}="{html.escape(value)}"'
                for name, value in attributes.items()
                if _allowed(text, name, value)
            )
            parts.append(f"<{text}{kept}>")
            if text not in _VOID:
                unclosed.append(text)
                depth[text] += 1
        elif depth[text]:
            closed = None
            while closed != text:
                closed = unclosed.pop()
                depth[closed] -= 1
                parts.append(f"</{closed}>")
    parts += [f"</{tag}>" for tag in reversed(unclosed)]
    return "".join(parts)


def is_web_link(target: str) -> bool:
    """Whether `target` is an address that a link may lead to."""
    return _LINK.match(target) is not None


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "href":
        return tag == "a" and is_web_link(value)
    if name == "style":
        return all(_declared(one) for one in value.split(";") if one.strip())
    if name == "d":
        return tag == "path" and _PATH.match(value) is not None
    if name == "xmlns":
        return value in _NAMESPACES
    return name in _PLAIN_ATTRIBUTES and _PLAIN.match(value) is not None


def _declared(declaration: str) -> bool:
    """Whether a declaration of a style is harmless: nothing leaves its box, nothing is loaded."""
    name, colon, value = declaration.partition(":")
    return (
        bool(colon)
        and name.strip().lower() in _PROPERTIES
        and bool(_STYLE_VALUE.match(value.strip()))
    )
