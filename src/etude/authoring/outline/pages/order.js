function start(){let at=0;function round(){if(at>=C.sentences.length)return finish();clear();say("");progress(at,C.sentences.length);
const s=C.sentences[at],line=el("div","line"),bank=el("div","grid"),got=[];
function draw(){line.replaceChildren(...got.map((g,i)=>button(g.textContent,"small",()=>{got.splice(i,1);g.disabled=false;draw()})));
if(got.length===s.pieces.length){if(same(got.map(g=>g.textContent).join(""),s.pieces.join(""))){for(const b of line.children){b.classList.add("yes");b.disabled=true}say(T.right+" "+s.answer);bank.replaceChildren(button(T.next,"main",()=>{at++;round()}))}else say(T.again)}}
for(const p of astray(s.pieces))bank.append(button(p,"",b=>{b.disabled=true;got.push(b);say("");draw()}));
if(s.hint)add(el("p","how",s.hint));add(line,bank)}round()}
