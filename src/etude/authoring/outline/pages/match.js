function start(){const rounds=[];for(let i=0;i<C.pairs.length;i+=5)rounds.push(C.pairs.slice(i,i+5));
if(rounds.length>1&&rounds.at(-1).length<2)rounds.at(-2).push(...rounds.pop());
let at=0,done=0;function round(){if(at>=rounds.length)return finish();clear();say("");const now=rounds[at];let open=now.length,left=null,right=null;
const box=el("div","pair"),a=el("div","list"),b=el("div","list");
function tap(side,x){return p=>{if(side==="l"){if(left)left.b.classList.remove("on");left={x,b:p}}else{if(right)right.b.classList.remove("on");right={x,b:p}}p.classList.add("on");judge()}}
function judge(){if(!left||!right)return;const l=left,r=right;left=right=null;l.b.classList.remove("on");r.b.classList.remove("on");
if(l.x.right===r.x.right||l.x.left===r.x.left){for(const y of[l.b,r.b]){y.classList.add("yes");y.disabled=true}say(T.right);done++;progress(done,C.pairs.length);if(--open===0){at++;setTimeout(round,700)}}
else{wrong(l.b);wrong(r.b)}}
for(const x of mixed(now))a.append(button(x.left,"",tap("l",x)));for(const x of mixed(now))b.append(button(x.right,"",tap("r",x)));
box.append(a,b);add(box)}progress(0,1);round()}
