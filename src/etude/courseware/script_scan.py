"""What the scripts of an activity must not even try, found by reading them.

A person who hides it gets past this; the policy and the sandbox (`containment`) hold then. This is
for telling authors early what would not work anyway.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal

Kind = Literal["asset", "unsafe"]

_SHOWN: Final = 80
_NAMESPACES: Final = ("http://www.w3.org/", "https://www.w3.org/")
_ADDRESS: Final = re.compile(
    r"[\"'`](?P<found>(?:(?:https?|wss?|ftp):)?//[A-Za-z0-9-]+\.[A-Za-z0-9][^\"'`\s]{0,300})"
)
_LOADS: Final = re.compile(r"\bimport\s*(?:[\w*{][^'\"`;()]{0,300}?\bfrom\s*|\(\s*)?[\"'`]")
_UNSAFE: Final = re.compile(
    r"\bfetch\s*\(|\b(?:XMLHttpRequest|WebSocket|EventSource|WebTransport|importScripts)\b"
    r"|\bsendBeacon\b|\b(?:webkit)?RTCPeerConnection\b|\b(?:Shared)?Worker\s*\("
    r"|\b(?:parent|top|opener)\s*\.\s*(?:document|location|frames|eval|localStorage)\b"
    r"|\bframeElement\b|\bwindow\s*\.\s*(?:opener|open)\b"
    r"|\bindexedDB\b|\bdocument\s*\.\s*(?:cookie|domain)\b|\bserviceWorker\b"
    r"|\blocation\s*(?:\.\s*(?:href|pathname|search|host|hostname|protocol)\s*)?=(?!=)"
    r"|\blocation\s*\.\s*(?:assign|replace|reload)\b"
)


def script_findings(source: str) -> Iterator[tuple[Kind, str]]:
    """Yield what a script must not do, each with the text that gave it away."""
    for match in _ADDRESS.finditer(source):
        if not match["found"].startswith(_NAMESPACES):
            yield "asset", match["found"][:_SHOWN]
    for match in _LOADS.finditer(source):
        yield "asset", source[match.start() : match.start() + _SHOWN]
    for match in _UNSAFE.finditer(source):
        yield "unsafe", match.group()[:_SHOWN]
