function start(){let at=0;const list=mixed(C.gaps);function round(){if(at>=list.length)return finish();clear();say("");progress(at,list.length);
const g=list[at],card=el("div","card"),p=el("p",""),slot=el("span","slot","\u00a0"),bank=el("div","grid");p.style.margin="0";p.append(g.before,slot,g.after);card.append(p);
for(const o of mixed(g.options))bank.append(button(o,"",b=>{if(o!==g.answer)return wrong(b);slot.textContent=o;b.classList.add("yes");for(const x of bank.children)x.disabled=true;say(T.right);
bank.after(button(T.next,"main",()=>{at++;round()}))}));
add(card);if(g.hint)add(el("p","how",g.hint));add(bank)}round()}
