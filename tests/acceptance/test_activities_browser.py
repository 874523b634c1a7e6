"""Every kind of activity of the three samples and of odd texts, on a phone of 360 pixels.

They run as a player shows them: sandboxed, without network. A small script taps what a learner who
knows the answers would tap; each button it taps has to be as large as a thumb.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from etude.authoring.material import Material
from etude.authoring.outline.activities import KINDS, activity, fitting_kinds
from etude.authoring.outline.module import lesson_of
from etude.authoring.outline.planning import plan
from etude.authoring.reading import read_material
from etude.authoring.samples import SAMPLES, sample
from etude.classroom.model import InteractiveContent
from etude.cli.page_check import WIDTH, PageReport, look_at

# One entry a kind; each looks at what is shown, and taps what is right there.
SOLVER: Final = """
const C=JSON.parse(document.getElementById("widget-config").textContent);
const T=C.words,task=document.getElementById("task"),
all=(q,of)=>[...(of||task).querySelectorAll(q)],
open=of=>all("button",of).filter(b=>!b.disabled&&b.offsetParent),
by=(text,of)=>open(of).find(b=>b.textContent===text);
let taps=0,wrongs=0;
const tap=b=>{const r=b.getBoundingClientRect();
if(r.height<44||r.width<24||r.left<0||r.right>innerWidth+1)
console.error("no thumb can tap: "+b.textContent+" "+[r.left,r.right,r.height]);taps++;b.click()};
const miss=right=>{if(wrongs>taps/4)return;
const b=open().find(b=>b!==right&&b.textContent!==T.next&&
b.textContent!==right.textContent);if(b){wrongs++;tap(b)}};
const kinds={
cards(){const knew=by(T.knew),face=all("button.card")[0];
if(knew&&!face.matches(".back")&&!C.cards.some(c=>c.front===c.back))
console.error("known before it is turned");tap(knew||face)},
gap(){const said=all(".card")[0].textContent;
const g=C.gaps.find(g=>g.before+"\\u00a0"+g.after===said),b=by(g.answer);miss(b);tap(b)},
match(){const [l,r]=all(".list"),a=open(l)[0];if(!a)return;
const p=C.pairs.find(p=>p.left===a.textContent);
tap(a);tap(by(p.right,r))},
order(){const bank=all(".grid")[0],shown=all("button",bank).map(b=>b.textContent).sort().join("|"),
s=C.sentences.find(s=>s.pieces.slice().sort().join("|")===shown);
tap(by(s.pieces[all(".line")[0].children.length],bank))},
sort(){const c=C.cards.find(c=>c.text===all(".card")[0].textContent),b=by(c.group);
if(b){miss(b);tap(b)}},
spell(){const hint=all(".card")[0].textContent,slots=all(".line span").map(s=>s.textContent),
w=C.spellings.find(w=>w.hint===hint&&w.word.length===slots.length),
at=slots.findIndex((s,i)=>s==="\\u00a0"&&w.word[i]!==" "),b=by(w.word[at]);miss(b);tap(b)},
spot(){const [l,r]=all(".card").map(c=>c.textContent),
c=C.claims.find(c=>c.left===l&&c.right===r),b=by(c.truth?T.yes:T.no);miss(b);tap(b)},
steps(){const s=C.sequences.find(s=>s.title===all("h1")[0].textContent),[done,bank]=all(".list"),
b=by(s.steps[done.children.length],bank);miss(b);tap(b)}};
const tick=()=>{
if(document.getElementById("say").textContent===T.done){
tap(by(T.restart));return etudeEnd(open().length?"done":"does not begin again")}
if(taps>2000)return etudeEnd("no end");
const next=by(T.next);
try{if(next)tap(next);else kinds[C.kind]()}catch(e){return etudeEnd("stuck: "+e)}
setTimeout(tick,20)};tick();
"""


# Words without a place to break, signs, other scripts, what a pattern or a page might trip over.
LONG: Final = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen"
ODD: Final = {
    "words": [
        *(f"{LONG[:57]}{at} = {'w' * 300}{at}" for at in range(3)),
        *("قطة = حيوان صغير يشرب الحليب", "kávā = ñä of marks", "👩‍🏫 = teacher"),
        *("C++ = $& and $1 and {answer}", "C# = @CONFIG@ </script>", "+ = plus", "🍎 = an apple"),
        *("ice  cream = cold", "to run = to go fast", "Anna = a name", "很 = " + "很" * 300),
    ],
    "sentences": [
        *(f"{LONG} {LONG} {at} {LONG} is here." for at in range(3)),
        *("قطة صغيرة تجلس على الشجرة", "天" * 30 + "地" * 30 + "人。"),
        *("The the THE the cat sees the.", "I saw the cat. // w" + "w" * 200),
        *("<b>This</b> & that $& is {answer}.", "🍎 🍌 🍇 👩‍🏫 🍎 are here."),
    ],
    "reading": ["猫", "狗", "鸡", "Yes.", "No.", "🍎", LONG, "قطة", "w" * 400],
    "syllabus": [
        "# Odd",
        *(f"## {LONG} {at}\n### Steps\n1. {LONG}\n1. Stir.\n1. stir\n1. Pour." for at in range(2)),
        *(f"## Sort {at}\n### {LONG}\n- {at} is {LONG}.\n- {at} is in." for at in range(2)),
        *("### قطة", "- It sits at the end."),
    ],
}  # fmt: skip


def all_pages(materials: Iterable[Material]) -> dict[str, str]:
    """Every kind of page, for every lesson that is long enough for it."""
    found: dict[str, str] = {}
    for material in materials:
        name = material.name
        syllabus = read_material([material])
        framework = plan(syllabus)
        for at in range(len(syllabus.units)):
            lesson = lesson_of(syllabus, framework, at)
            for kind in fitting_kinds(lesson):
                content = activity(lesson, kind).content
                assert isinstance(content, InteractiveContent)
                found[f"{name}[{at}] {kind}"] = content.html or ""
    return found


def test_every_activity_can_be_done_by_thumb(browser: Path) -> None:
    """Each page is done by taps and begins again, without an error, a request, or a wide line."""
    assert browser
    pages = all_pages(map(sample, SAMPLES))
    assert {name.rpartition(" ")[2] for name in pages} == set(KINDS)
    seen = look_at(pages, script=SOLVER)
    wrong = {name: one for name, one in seen.items() if not one.sound or one.end != "done"}
    assert wrong == {}
    assert seen.keys() == pages.keys()


def test_odd_texts_fit_a_phone(browser: Path) -> None:
    """Whatever signs the material has, each page is done by taps, and no line is wide."""
    assert browser
    pages = all_pages(
        Material(name=f"{name}.{'md' if name == 'syllabus' else 'txt'}", text="\n".join(lines))
        for name, lines in ODD.items()
    )
    assert {name.rpartition(" ")[2] for name in pages} == set(KINDS)
    seen = look_at(pages, script=SOLVER)
    wrong = {name: one for name, one in seen.items() if not one.sound or one.end != "done"}
    assert wrong == {}


def test_the_browser_sees_what_is_wrong(browser: Path) -> None:
    """Errors, requests, other addresses and wide lines are seen; none leaves the page."""
    assert browser
    pages = {
        "error": "<!DOCTYPE html><html><head></head><body><script>nobody()</script></body></html>",
        "promise": "<body><script>Promise.reject('no')</script></body>",
        "fetch": "<body><script>fetch('https://example.org/x').catch(()=>{})</script></body>",
        "image": "<body><img src='https://example.org/y.png'></body>",
        "wide": "<body><div style='width:900px'>.</div></body>",
        "leaves": "<body><script>setTimeout(()=>{location='about:blank'},50)</script></body>",
        "parent": "<body><script>try{parent.document.title='x';console.error('reached')}"
        "catch{etudeEnd('kept in')}</script></body>",
        "storage": "<body><script>localStorage.setItem('a','1');etudeEnd(localStorage.getItem('a'))"
        "</script></body>",
        "plain": "<!DOCTYPE html><html><head></head><body><p>Hello</p></body></html>",
    }
    seen = look_at(pages)
    assert any("nobody" in one for one in seen["error"].errors)
    assert seen["promise"].errors == ("no",)
    assert seen["fetch"].requests == ("https://example.org/x",)
    assert "https://example.org/y.png" in seen["image"].requests
    assert seen["wide"].width > WIDTH
    assert seen["leaves"].requests == ("another page",)
    assert seen["parent"].end == "kept in"
    assert (seen["storage"].end, seen["storage"].errors) == ("1", ())
    assert seen["plain"] == PageReport(width=WIDTH)
    unsound = {name for name, one in seen.items() if not one.sound}
    assert unsound == {"error", "promise", "fetch", "image", "wide", "leaves"}
