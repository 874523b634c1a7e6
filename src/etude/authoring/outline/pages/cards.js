function start(){let open=mixed(C.cards),known=0;function round(){if(!open.length)return finish();clear();say("");progress(known,C.cards.length);
const c=open[0];let back=false;const face=button(c.front,"card",()=>{back=!back;face.textContent=back?c.back:c.front;face.classList.toggle("back",back);row.hidden=false});
const row=el("div","pair");row.hidden=c.front!==c.back;row.append(button(T.learn,"",()=>{open.push(open.shift());round()}),button(T.knew,"main",()=>{open.shift();known++;round()}));
add(face,row);if(row.hidden)say(T.turn)}round()}
