"""Reports and cards in a real browser, on a phone of 360 pixels, as a parent opens them.

What numbers in the page cannot tell shows here: how wide text is in the browser's own fonts.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from etude.cli.page_check import look_at
from etude.clock import RandomIds, SystemClock
from etude.events.model import Event
from etude.events.ndjson import decode_line
from etude.examiner.card_page import render_card
from etude.examiner.cards import CardContent, JourneyProgress, OpenCard
from etude.examiner.examining import make_report
from etude.examiner.page import render_page
from etude.examiner.report import Locale
from etude.rubric.library import RubricLibrary
from etude.rubric.model import Rubric
from etude.testing.builders import event, session
from etude.testing.samples import sample_lines

RUBRIC: Final = RubricLibrary.load().get("violin-basic")
LONG: Final = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik " * 3
LOCALES: Final[tuple[Locale, ...]] = ("en", "zh-CN")
# Says which texts lie on one another, which are cut, which leave the screen, and whose contrast is
# below 4.5 to 1 (WCAG 2.2, 1.4.3).
PROBE: Final = """
const wrong=[],texts=[],rgb=s=>s.match(/[\\d.]+/g).map(Number),
light=c=>c.slice(0,3).map(v=>(v/=255)<=.04045?v/12.92:((v+.055)/1.055)**2.4)
.reduce((sum,v,i)=>sum+v*[.2126,.7152,.0722][i],0),
ground=e=>{for(;e;e=e.parentElement){const c=rgb(getComputedStyle(e).backgroundColor);
if(c.length<4||c[3])return c}return[255,255,255]},
walk=document.createTreeWalker(document.body,NodeFilter.SHOW_TEXT);
while(walk.nextNode()){const n=walk.currentNode,p=n.parentElement,said=n.data.trim();
if(!said||p.closest("script,style"))continue;
const s=getComputedStyle(p),r=document.createRange();r.selectNodeContents(n);
const [a,b]=[light(rgb(p.closest("svg")?s.fill:s.color)),light(ground(p))].sort((x,y)=>y-x);
if((a+.05)/(b+.05)<4.5)wrong.push("contrast: "+said);
for(const q of r.getClientRects()){if(q.width<1)continue;
if(q.left<-1||q.right>innerWidth+1)wrong.push("outside: "+said);texts.push([q,n,said])}}
texts.forEach(([a,n,x],i)=>texts.slice(i+1,i+150).forEach(([b,m,y])=>{if(n!==m&&
Math.min(a.right,b.right)-Math.max(a.left,b.left)>1.5&&
Math.min(a.bottom,b.bottom)-Math.max(a.top,b.top)>6)wrong.push("overlap: "+x+" | "+y)}));
for(const e of document.querySelectorAll("body :not(svg)"))
if(getComputedStyle(e).overflowX==="hidden"&&e.scrollWidth>e.clientWidth)wrong.push("cut: "+
e.textContent);
etudeEnd(wrong.length?wrong.slice(0,4).join("; "):texts.length>9?"readable":"empty")"""


def named_at_length() -> Rubric:
    """The violin's rubric, every name of it far too long."""
    titles = {"en": LONG, "zh-CN": "名称特别特别长的阶段或者维度" * 5}
    dimensions = {
        name: msgspec.structs.replace(one, title=titles) for name, one in RUBRIC.dimensions.items()
    }
    phases = tuple(msgspec.structs.replace(one, title=titles) for one in RUBRIC.phases)
    return msgspec.structs.replace(RUBRIC, locale=titles, dimensions=dimensions, phases=phases)


def sessions() -> dict[str, tuple[list[Event], Rubric]]:
    """Sessions that a page has to stand: name → events and rubric."""
    sample = [decode_line(line) for line in sample_lines("violin-3min")]
    contests = [
        event(
            f"c{n}",
            event_type="signal_contested",
            value={"event_id": one.event_id},
            session_id=one.session_id,
        )
        for n, one in enumerate(sample)
    ]
    hurried = [
        event(f"s{n}", phase=phase, ts=ts)
        for n, (phase, ts) in enumerate(
            [("preparation", 0.0), ("operation", 1.0), ("cleanup", 119.0), ("cleanup", 120.0)]
        )
    ]
    return {
        "sample": (sample, RUBRIC),
        "hurried": (hurried, RUBRIC),
        "forty phases": ([event(f"m{n}", ts=float(n), phase=f"p{n}") for n in range(40)], RUBRIC),
        "one event": (sample[:1], RUBRIC),
        "full marks for a quarter": (sample[:3], RUBRIC),
        "all contested": (sample + contests, RUBRIC),
        "three hundred events": (session(300), RUBRIC),
        "long names": (sample, named_at_length()),
    }


def reports() -> dict[str, str]:
    found = {}
    for name, (events, rubric) in sessions().items():
        for locale in LOCALES:
            report = make_report(
                events, rubric, locale=locale, clock=SystemClock(), ids=RandomIds()
            )
            found[f"{name}, {locale}"] = render_page(report, events, rubric)
    return found


def cards() -> dict[str, str]:
    progress = JourneyProgress(sessions=100_000, minutes=9_999_999.9, last_metric="W" * 100)
    content = CardContent(
        recap_highlights=["x" * 200, "很" * 200],
        uncertainty_count=20_000,
        journey_progress=progress,
    )
    made = datetime(2026, 9, 1, tzinfo=UTC)
    card = OpenCard(content=content, made_at=made, expires_at=made.replace(month=12))
    url = f"https://etude.example.org/cards/{'a' * 43}"
    return {f"card, {locale}": render_card(card, url, locale) for locale in LOCALES}


def test_every_page_can_be_read_on_a_phone(browser: Path) -> None:
    """No text lies on another, is cut, leaves the screen or is too pale; nothing is fetched."""
    assert browser
    pages = reports() | cards()
    seen = look_at(pages, script=PROBE)
    wrong = {name: one for name, one in seen.items() if not one.sound or one.end != "readable"}
    assert wrong == {}
    assert seen.keys() == pages.keys()


def test_what_cannot_be_read_is_seen(browser: Path) -> None:
    """Each fault that the test above looks for is found where it is."""
    assert browser
    line = "<p>0 1 2 3 4 5 6 7 8 9</p>" * 10
    pages = {
        "overlap": f"{line}<p style='margin-top:-30px'>over another line</p>",
        "cut": f"{line}<p style='overflow:hidden;white-space:nowrap;width:20px'>much too long</p>",
        "outside": f"{line}<p style='position:absolute;left:-50px'>beyond the edge</p>",
        "contrast": f"{line}<p style='color:#aaa'>pale</p>",
    }
    whole = {name: f"<!doctype html><html><head></head><body>{one}" for name, one in pages.items()}
    seen = look_at(whole, script=PROBE)
    assert {name: (one.end or "").partition(":")[0] for name, one in seen.items()} == {
        name: name for name in pages
    }
