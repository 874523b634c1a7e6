function start(){let at=0;const list=mixed(C.cards);function round(){if(at>=list.length)return finish();clear();say("");progress(at,list.length);
const c=list[at],box=el("div","list");for(const g of C.groups)box.append(button(g,"",b=>{if(g!==c.group)return wrong(b);b.classList.add("yes");for(const x of box.children)x.disabled=true;say(T.right);setTimeout(()=>{at++;round()},800)}));
add(el("div","card",c.text),box)}round()}
