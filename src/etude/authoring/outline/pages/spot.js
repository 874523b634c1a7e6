function told(c){return T.is_right.replace("{answer}",()=>c.answer)}
function start(){let at=0;const list=mixed(C.claims);function round(){if(at>=list.length)return finish();clear();say("");progress(at,list.length);
const c=list[at],row=el("div","pair"),top=el("div","card",c.left),low=el("div","card",c.right);top.classList.add("back");top.style.minHeight="90px";
function judge(v){return b=>{if(v!==c.truth){wrong(b,c.truth?T.again:T.again+" "+told(c));return}b.classList.add("yes");for(const x of row.children)x.disabled=true;say(c.truth?T.right:T.right+" "+told(c));row.after(button(T.next,"main",()=>{at++;round()}))}}
row.append(button(T.yes,"",judge(true)),button(T.no,"",judge(false)));add(top,low,row)}round()}
