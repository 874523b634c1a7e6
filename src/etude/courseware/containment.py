"""What holds an activity in, whatever its scripts do (`openmaic.md §7.1`).

Scanning cannot see what a script will do; these can. `CONTENT_POLICY` stands in the page itself and
goes as a header with it; `SANDBOX` is the frame's attribute: never `allow-same-origin`, so the page
has an origin of its own that reaches neither its parent nor any storage. `GUARD` runs before every
other script: storage in memory only, no WebRTC (which no policy covers), no way to another page.
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
GUARD: Final = (
    "(()=>{const w=window,s=(n,v)=>{try{Object.defineProperty(w,n,{value:v})}catch{}};"
    "const m=()=>{const d=new Map;return{getItem:k=>d.has(k=String(k))?d.get(k):null,"
    "setItem:(k,v)=>{d.set(String(k),String(v))},removeItem:k=>{d.delete(String(k))},"
    "clear:()=>d.clear(),key:i=>[...d.keys()][i]??null,get length(){return d.size}}};"
    's("localStorage",m());s("sessionStorage",m());s("open",()=>null);'
    'for(const n of["RTCPeerConnection","webkitRTCPeerConnection","WebTransport"])s(n,undefined);'
    'w.navigation?.addEventListener("navigate",e=>{e.hashChange||e.preventDefault()})})()'
)
