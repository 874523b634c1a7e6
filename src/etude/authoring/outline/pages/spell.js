function start(){let at=0;const list=mixed(C.spellings);function round(){if(at>=list.length)return finish();clear();say("");progress(at,list.length);
const w=list[at],line=el("div","line"),bank=el("div","grid"),letters=Array.from(w.word);let n=0;
function draw(){line.replaceChildren(...letters.map((x,i)=>{const s=el("span","slot",i<n?x:"\u00a0");s.style.minWidth="1.3em";s.style.fontSize="1.4rem";return s}))}
for(const x of astray(letters.filter(y=>y.trim())))bank.append(button(x,"",b=>{while(letters[n]===" ")n++;if(x!==letters[n])return wrong(b);b.disabled=true;n++;while(letters[n]===" ")n++;draw();
if(n>=letters.length){say(T.right+" "+w.word);bank.replaceChildren(button(T.next,"main",()=>{at++;round()}))}}));
draw();add(el("div","card",w.hint),line,bank)}round()}
