"""Looks at pages as a player would show them: in a sandboxed frame, on a small phone, headless.

What reading cannot see shows here: scripts that fail, requests that are attempted (and refused),
content wider than a phone of 360 pixels. A tool for operators and tests: it needs Chromium or a
browser like it on the path, and nothing else.
"""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from etude.cli.errors import BrowserFailedError, BrowserMissingError
from etude.courseware.containment import CONTENT_POLICY, GUARD, SANDBOX

WIDTH: Final = 360
HEIGHT: Final = 740
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_BUDGET_MS: Final = 60_000
_LONGEST_S: Final = 300
_MOST_TOLD: Final = 20
_HEAD: Final = re.compile(r"<head(?:\s[^>]*)?>", re.IGNORECASE)
_FOUND: Final = re.compile(r'<pre id="found">(.*?)</pre>', re.DOTALL)
# Stands first in each page. `etudeEnd` is for a script that a caller adds.
_PROBE: Final = """(()=>{const tell=(kind,value)=>parent.postMessage({etude:kind,value:String(value)
.slice(0,300)},"*");window.etudeEnd=value=>tell("end",value);
addEventListener("error",e=>tell("error",e.message||"a part of the page cannot be loaded"),true);
addEventListener("unhandledrejection",e=>tell("error",e.reason));
addEventListener("securitypolicyviolation",e=>tell("request",e.blockedURI||e.violatedDirective));
const say=console.error;console.error=(...a)=>{tell("error",a.join(" "));say(...a)};
const measure=()=>tell("width",document.documentElement.scrollWidth);
addEventListener("load",()=>{measure();setInterval(measure,250)})})()"""
_HOST: Final = """<!DOCTYPE html><html><head><meta charset="utf-8"></head><body><div id="room">
</div><pre id="found"></pre><script>
const pages=JSON.parse(document.getElementById("pages").textContent),found={},frames=new Map;
for(const [name,page] of Object.entries(pages)){
const f=document.createElement("iframe"),one={errors:[],requests:[],width:0,end:null};let loads=0;
f.setAttribute("sandbox","@SANDBOX@");f.width=@WIDTH@;f.height=@HEIGHT@;f.style.border=0;
f.onload=()=>{if(++loads>1)one.requests.push("another page")};
found[name]=one;f.srcdoc=page;document.getElementById("room").append(f);
frames.set(f.contentWindow,one)}
const put=()=>{document.getElementById("found").textContent=JSON.stringify(found)};
addEventListener("message",e=>{const one=frames.get(e.source),m=e.data;if(!one||!m)return;
if(m.etude==="error")one.errors.push(m.value);
else if(m.etude==="request")one.requests.push(m.value);
else if(m.etude==="width")one.width=Math.max(one.width,+m.value);
else if(m.etude==="end")one.end=m.value;put()});put()
</script></body></html>"""


class PageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one page.

    Attributes:
        errors: of its scripts, and what they wrote as errors.
        requests: what it tried to fetch or open; nothing of it left the machine.
        width: of its content, in pixels; more than `WIDTH` has to be scrolled sideways.
        end: what a script that was added said at its end.
    """

    errors: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    width: int = 0
    end: str | None = None

    @property
    def sound(self) -> bool:
        """Whether there is nothing to complain of."""
        return not self.errors and not self.requests and 0 < self.width <= WIDTH


def find_browser() -> Path:
    """Return the browser of this machine; raises `BrowserMissingError`."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise BrowserMissingError(known=", ".join(BROWSERS))


def look_at(pages: Mapping[str, str], *, script: str = "") -> dict[str, PageReport]:
    """Show pages side by side for a while; return what was seen of each.

    Args:
        pages: name → HTML.
        script: what is done in each page when it is there; it may call `etudeEnd(text)`.

    Raises:
        BrowserMissingError: there is none.
        BrowserFailedError: it did not do it.
    """
    if not pages:
        return {}
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="etude-pages-") as folder:
        host = Path(folder, "host.html")
        host.write_text(host_page(pages, script=script), "utf-8")
        shown = _run(browser, host, Path(folder, "profile"))
    match = _FOUND.search(shown)
    if match is None:
        raise BrowserFailedError(reason="it showed nothing")
    told = json.loads(html.unescape(match[1]))
    return {
        name: PageReport(
            errors=tuple(one["errors"][:_MOST_TOLD]),
            requests=tuple(one["requests"][:_MOST_TOLD]),
            width=one["width"],
            end=one["end"],
        )
        for name, one in told.items()
    }


def host_page(pages: Mapping[str, str], *, script: str = "") -> str:
    """Return the page that shows pages in frames, as a player does."""
    framed = {name: _probed(page, script) for name, page in pages.items()}
    data = json.dumps(framed).replace("<", "\\u003c")
    config = f'<script type="application/json" id="pages">{data}</script><script>'
    host = _HOST.replace("@SANDBOX@", SANDBOX).replace("@WIDTH@", str(WIDTH))
    return host.replace("@HEIGHT@", str(HEIGHT)).replace("<script>", config, 1)


def _probed(page: str, script: str) -> str:
    """Return a page with its policy, its guard and the probe before everything else."""
    first = (
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(CONTENT_POLICY)}">'
        f"<script>{GUARD}</script><script>{_PROBE}</script>"
    )
    head = _HEAD.search(page)
    at = head.end() if head else 0
    last = f'<script>addEventListener("load",()=>{{{script}}})</script>' if script else ""
    return page[:at] + first + page[at:] + last


def _run(browser: Path, host: Path, profile: Path) -> str:
    command = [
        str(browser), "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions",
        "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
        "--disable-features=IsolateSandboxedIframes", "--window-size=3700,3200",
        f"--user-data-dir={profile}", f"--virtual-time-budget={_BUDGET_MS}", "--dump-dom",
        host.as_uri(),
    ]  # fmt: skip
    if os.geteuid() == 0:  # the browser's own sandbox does not run as root
        command.insert(1, "--no-sandbox")
    try:
        done = subprocess.run(  # noqa: S603 - a browser of the path, our own arguments
            command, capture_output=True, check=True, timeout=_LONGEST_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BrowserFailedError(reason=type(error).__name__) from error
    return done.stdout.decode("utf-8", "replace")
