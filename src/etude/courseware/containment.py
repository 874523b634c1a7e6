"""What holds an activity in, whatever its scripts do (`docs/courseware.md §Freezing`).

Scanning cannot see what a script will do; these can. `CONTENT_POLICY` stands in the page itself and
goes as a header with it; `SANDBOX` is the frame's attribute: never `allow-same-origin`, so the page
has an origin of its own that reaches neither its parent nor any storage. `GUARD` runs before every
other script: storage in memory only, no WebRTC (which no policy covers), links to a place in the
page stay in it (`srcdoc` has its parent's address). `EMBEDDER_POLICY` keeps frames from leaving.

What no browser offers a way against: before a navigation that is refused, and for `preconnect`, it
opens a bare connection, which carries no request, but tells whoever is there that somebody plays.
"""

from typing import Final

SANDBOX: Final = "allow-scripts"
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
    " img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none';"
    " frame-src 'none'; worker-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
HEADER_POLICY: Final = f"{CONTENT_POLICY}; sandbox {SANDBOX}; frame-ancestors 'self'"
"""As a header, where the page is served by its own address."""
EMBEDDER_POLICY: Final = "frame-src 'none'"
"""Part of the policy of the page that holds the frame: no frame in it goes anywhere, whoever asks.

Nothing in a sandboxed page can keep it from navigating itself, and so from saying what it knows to
whoever serves the address; browsers try every navigation of a frame against this. A page that is
put into its frame as text (`srcdoc`) is not tried.
"""
_IN_MEMORY: Final = (
    "(()=>{const w=window,s=(n,v)=>{try{Object.defineProperty(w,n,{value:v})}catch{}};"
    "const m=()=>{const d=new Map;return{getItem:k=>d.has(k=String(k))?d.get(k):null,"
    "setItem:(k,v)=>{d.set(String(k),String(v))},removeItem:k=>{d.delete(String(k))},"
    "clear:()=>d.clear(),key:i=>[...d.keys()][i]??null,get length(){return d.size}}};"
    's("localStorage",m());s("sessionStorage",m());s("open",()=>null);'
    'for(const n of["RTCPeerConnection","webkitRTCPeerConnection","WebTransport"])s(n,undefined);'
)
GUARD: Final = (
    f"{_IN_MEMORY}"
    'document.addEventListener("click",e=>{const a=e.target.closest?.(\'[href^="#"]\');'
    "if(a){e.preventDefault();let t;try{"
    't=document.getElementById(decodeURIComponent(a.getAttribute("href").slice(1)))}catch{}'
    "t?.scrollIntoView()}},true)})()"
)
_SEEN_BY_NAVIGATION: Final = (
    f"{_IN_MEMORY}"
    'w.navigation?.addEventListener("navigate",e=>{e.hashChange||e.preventDefault()})})()'
)
EARLIER_GUARDS: Final = (_SEEN_BY_NAVIGATION,)
"""Guards in pages that were published: one that changes goes here, or no bundle with it loads."""
