function start(){let at=0;function round(){if(at>=C.sequences.length)return finish();clear();say("");progress(at,C.sequences.length);
const s=C.sequences[at],done=el("div","list"),bank=el("div","list");let n=0;
for(const x of astray(s.steps))bank.append(button(x,"left",b=>{if(!same(x,s.steps[n]))return wrong(b);b.remove();n++;const row=el("div","");row.append(el("span","n",String(n)),x);done.append(row);say(T.right);progress(at+n/s.steps.length,C.sequences.length);
if(n===s.steps.length)bank.append(button(T.next,"main",()=>{at++;round()}))}));
add(el("h1","",s.title),done,bank)}round()}
