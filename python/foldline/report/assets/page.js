(() => {
"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement, $ = (id) => document.getElementById(id);
root.classList.add("scripted");
const N = D.tokens.length, W = D.width, NS = "http://www.w3.org/2000/svg";
const fmt = (n) => Math.round(n).toLocaleString("en-US");
const make = (svg) => (name, attrs, ...kids) => {
  const e = svg ? document.createElementNS(NS, name) : document.createElement(name);
  for (const key in attrs) if (key === "on") for (const type in attrs.on) e.addEventListener(type, attrs.on[type]); else e.setAttribute(key, attrs[key]);
  e.append(...kids);
  return e;
};
const h = make(false), s = make(true);
const all = (query) => document.querySelectorAll(query);

// Prefix sums: tokens of all messages, and of those that stay at every cut.
const P = [0], F = [0], K = [0], fixed = new Set(D.fixed);
for (let i = 0; i < N; i++) {
  P.push(P[i] + D.tokens[i]);
  F.push(F[i] + (fixed.has(i) ? D.tokens[i] : 0));
  K.push(K[i] + (fixed.has(i) ? 1 : 0));
}
const scale = W / Math.max(D.before, D.after, 1), X = (tokens) => tokens * scale;
const facts = D.facts.message.map((message, i) => ({ message, kind: D.kinds[D.facts.kind[i]], state: D.facts.state[i], text: D.facts.text[i], weight: D.facts.weight[i], tokens: D.facts.tokens[i] }));
const byMessage = new Map();
facts.forEach((fact, i) => { if (fact.message >= 0) byMessage.set(fact.message, [...(byMessage.get(fact.message) || []), i]); });
let cut = D.cut, picked = -1;
const isChosen = () => cut === D.cut;
const fateOf = (i) => (isChosen() ? D.fate[i] : D.fate[i] === "p" ? "p" : i >= cut || fixed.has(i) ? "k" : "f");
/** What stays, for any legal cut: sums alone, no walk over the messages. */
const costOf = (c) => {
  const staying = N - c + K[c], kept = P[N] - P[c] + F[c];
  return { folded: N - staying, staying, after: c === D.cut ? D.after : kept + D.overhead + D.room, summary: c === D.cut ? D.summary : D.room };
};

// The picture: what depends on the cut moves, the strips do not.
const TOP = 9, END = 51, LOW = 156, BEND = (END + LOW) / 2;
const ribbon = (a, b, p, q) => `M${a} ${END}C${a} ${BEND} ${p} ${BEND} ${p} ${LOW}H${q}C${q} ${BEND} ${b} ${BEND} ${b} ${END}Z`;
const set = (id, attrs) => { const e = $(id); if (e) for (const key in attrs) e.setAttribute(key, attrs[key]); };
const rects = (list, top) => list.map(([x, w]) => `M${x.toFixed(2)} ${top}h${Math.max(w, 0.5).toFixed(2)}v42h${-Math.max(w, 0.5).toFixed(2)}z`).join("");
function draw() {
  const c = costOf(cut), cx = X(P[cut]), sum = X(c.summary);
  set("cfr", { width: cx }); set("ckr", { x: cx, width: Math.max(W - cx, 0) });
  $("ab").toggleAttribute("hidden", !isChosen()); $("at").toggleAttribute("hidden", isChosen());
  let x = X(F[D.head]) + sum, pins = [], pinned = [], stays = [];
  for (const i of D.fixed) {
    const w = X(D.tokens[i]), isPin = D.fate[i] === "p", isHead = i < D.head;
    const at = isHead ? X(F[i]) : i < cut ? x : x + X(P[i] - P[cut]);
    if (!isHead && i < cut) x += w;
    if (isPin) pins.push([X(P[i]) + w / 2, at + w / 2]);
    (isPin ? pinned : stays).push([at, w]);
  }
  const tail = cut < N ? X(P[N] - P[cut]) : 0;
  if (!isChosen()) {
    set("as", { x: X(F[D.head]), width: sum });
    set("am", { transform: `translate(${x - cx} ${LOW - TOP})` });
    set("af", { d: rects(stays.filter(([at]) => at < x), LOW) });
    set("ap", { d: rects(pinned, LOW) });
  }
  set("rf", { d: c.summary ? ribbon(0, cx, X(F[D.head]), X(F[D.head]) + sum) : "" });
  set("rk", { d: tail ? ribbon(cx, W * Math.min(1, P[N] * scale / W), x, x + tail) : "" });
  $("pins").replaceChildren(...pins.slice(0, 80).flatMap(([a, b]) => [s("path", { class: "rib-p", d: `M${a} ${END}C${a} ${BEND} ${b} ${BEND} ${b} ${LOW}` }), s("path", { class: "p pin", d: `M${a} ${TOP + 13}l4.5 -6l-4.5 -6l-4.5 6z` })]));
  set("cutl", { d: cut < N ? `M${cx} 0V${END + 5}` : "" });
  set("edge", { width: Math.max(x + tail, 1) });
  const right = Math.max(x + tail, D.budget ? X(D.budget) : 0) + 26, isWide = right < W * 0.66;
  set("free", { x: right }); $("free").toggleAttribute("hidden", !isWide);
  $("freen").textContent = fmt(Math.max(D.before - c.after, 0)) + " tokens free";
  const over = D.budget && c.after > D.budget ? `, over the budget by ${fmt(c.after - D.budget)}` : "";
  const kept = c.staying - pins.length, parts = [c.summary && "the summary", pins.length && pins.length + " pinned", kept && kept + " kept"];
  $("aftertext").textContent = `${fmt(c.after)} tokens: ${parts.filter(Boolean).join(", ") || "nothing"}${over}`;
  $("cutlab").replaceChildren(cut < N ? "Cut before message " : "All that may fold", h("b", {}, cut < N ? cut : ""), `: ${fmt(c.folded)} messages fold, ${fmt(c.after)} tokens stay`);
  const slider = $("cut");
  slider.value = P[cut];
  slider.setAttribute("aria-valuetext", `cut before message ${cut}, ${c.folded} folded, ${fmt(c.after)} tokens after`);
  for (const b of all("#stops button")) b.setAttribute("aria-pressed", String(+b.dataset.cut === cut));
}
function setCut(c) {
  cut = c;
  draw();
  filter();
  if (picked >= 0) tell(picked);
}
/** The legal cut nearest to a number of tokens, by bisection. */
function nearest(tokens) {
  let a = 0, b = D.cuts.length - 1;
  while (b - a > 1) { const m = (a + b) >> 1; if (P[D.cuts[m]] <= tokens) a = m; else b = m; }
  return Math.abs(P[D.cuts[b]] - tokens) < Math.abs(P[D.cuts[a]] - tokens) ? D.cuts[b] : D.cuts[a];
}
if (D.slides) {
  const slider = $("cut");
  slider.max = P[N];
  slider.addEventListener("input", () => setCut(nearest(+slider.value)));
  slider.addEventListener("keydown", (e) => {
    const last = D.cuts.length - 1, at = D.cuts.indexOf(cut);
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - 10, PageUp: at + 10, Home: 0, End: last }[e.key];
    if (to === undefined && e.key !== "Escape") return;
    e.preventDefault();
    setCut(e.key === "Escape" ? D.cut : D.cuts[Math.min(last, Math.max(0, to))]);
  });
  for (const b of all("#stops button")) b.addEventListener("click", () => setCut(+b.dataset.cut));
  document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !isChosen()) setCut(D.cut); });
  draw();
}

// The list: one height, and only the rows in sight exist.
const RH = 27, list = $("list"), pad = $("pad"), rows = new Map(), most = D.tokens.reduce((a, b) => Math.max(a, b), 1);
if (N < 16) list.style.height = Math.max(N, 2) * RH + "px";
let shown = [], want = "all", query = "", place = new Map();
function filter() {
  shown = [];
  for (let i = 0; i < N; i++) {
    if (want === "e" ? !byMessage.has(i) : want !== "all" && fateOf(i) !== want) continue;
    if (query && !D.preview[i].toLowerCase().includes(query) && String(i) !== query) continue;
    shown.push(i);
  }
  place = new Map(shown.map((i, k) => [i, k]));
  pad.style.height = shown.length * RH + "px";
  $("count").textContent = `${fmt(shown.length)} of ${fmt(N)}`;
  repaint();
}
function repaint() {
  pad.replaceChildren();
  rows.clear();
  paint();
}
function paint() {
  const a = Math.max(0, Math.floor(list.scrollTop / RH) - 4), b = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / RH) + 4);
  for (const [k, row] of rows) if (k < a || k >= b) { row.remove(); rows.delete(k); }
  for (let k = a; k < b; k++) if (!rows.has(k)) { const made = row(k); rows.set(k, made); pad.append(made); }
  if (!shown.length && !pad.firstChild) pad.append(h("p", { class: "hint none" }, "No message matches."));
}
const roleOf = (i) => D.roles[D.role[i]];
const about = (i) => `message ${i}, ${roleOf(i)}, ${fmt(D.tokens[i])} tokens, ${D.fates[fateOf(i)][1]}`;
const textOf = (i) => D.detail[i] || D.preview[i];
function row(k) {
  const i = shown[k], fate = fateOf(i), [sign, name] = D.fates[fate];
  const bar = s("svg", { width: 74, height: 10, "aria-hidden": "true" }, s("rect", { width: Math.max(1.5, 74 * Math.sqrt(D.tokens[i] / most)), height: 10, rx: 2, class: "fd".includes(fate) ? "bar0" : "bar1" }));
  const e = h("div", { class: `row ${fate}${i === picked ? " on" : ""}`, role: "option", id: "m" + i, "aria-selected": String(i === picked), "aria-posinset": k + 1, "aria-setsize": shown.length, on: { click: () => pick(i, -1), pointermove: (ev) => tip(ev, about(i), textOf(i)), pointerleave: untip } },
    h("span", { class: "i mono" }, i), h("span", { class: "g g" + fate, "aria-hidden": "true" }, sign), h("span", { class: "g" + fate }, name), h("span", { class: "ro" }, D.short[D.role[i]]), bar,
    h("span", { class: "x" }, (byMessage.has(i) ? "★ " : "") + D.preview[i]));
  e.style.top = k * RH + "px";
  return e;
}
function tell(i) {
  const fate = fateOf(i), [sign, name, becomes] = D.fates[fate], code = isChosen() && D.reason[i] >= 0 ? D.reasons[D.reason[i]] : fate === "f" ? "before_cut" : fixed.has(i) ? "fixed" : "recent";
  const why = D.words[code] ? ` (${D.words[code]})` : "", now = isChosen() && D.now[i] >= 0 ? ` Now message ${D.now[i]}.` : "";
  const side = $("side"), own = byMessage.get(i) || [], text = textOf(i);
  side.replaceChildren(h("h2", {}, `Message ${i}`, h("span", {}, `${roleOf(i)} · ${fmt(D.tokens[i])} tokens`)),
    h("p", { class: "fate" }, h("b", { class: "g" + fate }, `${sign} ${name}`), ` — ${becomes}. Reason: `, h("code", {}, code), `${why}.${now}`));
  if (text) side.append(h("p", { class: "hint" }, "What it says"), h("pre", { tabindex: 0 }, text));
  if (own.length) side.append(h("ul", { "aria-label": "Facts from this message" }, ...own.map((j) => {
    const fact = facts[j], [mark, means, color] = D.states[fact.state];
    return h("li", {}, h("b", { class: color, "aria-hidden": "true" }, mark), h("span", {}, fact.text, h("small", {}, `${fact.kind.replace("_", " ")}, weight ${fact.weight}, ${fact.tokens} tokens: ${means}`)));
  })));
}
function pick(i, fact) {
  picked = i;
  for (const e of all("[data-fact]")) {
    const on = +e.dataset.fact === fact;
    if (e.tagName !== "MARK") { e.setAttribute("aria-pressed", String(on)); continue; }
    e.classList.toggle("on", on);
    if (on) { const box = $("sum"); box.scrollTop = e.offsetTop - box.offsetTop - 90; }
  }
  if (i < 0) return;
  if (!place.has(i)) { want = "all"; query = $("q").value = ""; press(); filter(); }
  const y = place.get(i) * RH;
  if (y < list.scrollTop || y > list.scrollTop + list.clientHeight - RH) list.scrollTop = y - 160;
  repaint();
  list.setAttribute("aria-activedescendant", "m" + i);
  hover(i);
  tell(i);
}
const press = () => { for (const b of all("#filters button")) b.setAttribute("aria-pressed", String(b.dataset.f === want)); };
for (const b of all("#filters button")) b.addEventListener("click", () => { want = b.dataset.f; press(); list.scrollTop = 0; filter(); });
$("q").addEventListener("input", (e) => { query = e.target.value.toLowerCase(); list.scrollTop = 0; filter(); });
$("q").addEventListener("keydown", (e) => { if (e.key === "Escape") { e.stopPropagation(); query = e.target.value = ""; filter(); list.focus(); } });
list.addEventListener("scroll", () => requestAnimationFrame(paint), { passive: true });
list.addEventListener("keydown", (e) => {
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 14, PageUp: -14, Home: -N, End: N }[e.key];
  if (!by || !shown.length) return;
  e.preventDefault();
  const at = place.has(picked) ? place.get(picked) + by : 0;
  pick(shown[Math.min(shown.length - 1, Math.max(0, at))], -1);
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || /^(INPUT|TEXTAREA)$/.test(e.target.tagName)) return;
  e.preventDefault();
  $("q").focus();
});

// Facts: a square, a mark in the summary, and the message are one.
for (const e of all("[data-fact]")) {
  const i = +e.dataset.fact, fact = facts[i], go = () => pick(fact.message, i);
  e.addEventListener("click", go);
  if (e.tagName === "MARK") e.addEventListener("keydown", (ev) => { if (ev.key === "Enter" || ev.key === " ") { ev.preventDefault(); go(); } });
  e.addEventListener("pointermove", (ev) => tip(ev, `${fact.kind.replace("_", " ")}, ${fact.message < 0 ? "from an earlier summary" : "message " + fact.message}, weight ${fact.weight}`, `${fact.text} — ${D.states[fact.state][1]}`));
  e.addEventListener("pointerleave", untip);
}

// Hover: the message under the pointer, by bisection on the prefix sums.
const box = h("div", { id: "tip", hidden: "" }), pic = $("pic");
document.body.append(box);
function tip(e, head, text) {
  box.replaceChildren(h("b", {}, head), text.slice(0, 240));
  box.hidden = false;
  box.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - 400)) + "px";
  box.style.top = (e.clientY > innerHeight - 150 ? e.clientY - 110 : e.clientY + 16) + "px";
}
function untip() { box.hidden = true; }
const hover = (i) => set("hov", { x: X(P[i]) - 1, width: X(D.tokens[i]) + 2 });
function under(e) {
  const r = pic.getBoundingClientRect(), y = ((e.clientY - r.top) / r.height) * D.height, t = ((e.clientX - r.left) / r.width) * W / scale;
  if (y < TOP - 5 || y > END + 5 || t >= P[N]) return -1;
  let a = 0, b = N;
  while (b - a > 1) { const m = (a + b) >> 1; if (P[m] <= t) a = m; else b = m; }
  return a;
}
pic.addEventListener("pointermove", (e) => { const i = under(e); if (i < 0) return untip(); hover(i); tip(e, about(i), textOf(i)); });
pic.addEventListener("pointerleave", untip);
pic.addEventListener("click", (e) => { const i = under(e); if (i >= 0) pick(i, -1); });

$("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
// On paper there is no scrolling: the first rows of the list as it is filtered.
addEventListener("beforeprint", () => {
  const many = Math.min(200, shown.length);
  pad.replaceChildren();
  rows.clear();
  pad.style.height = many * RH + "px";
  for (let k = 0; k < many; k++) { const made = row(k); rows.set(k, made); pad.append(made); }
});
addEventListener("afterprint", filter);
function follow() {
  const m = /^#m(\d+)$/.exec(location.hash);
  if (!m || +m[1] >= N) return false;
  pick(+m[1], -1);
  list.scrollIntoView({ block: "nearest" });
  return true;
}
addEventListener("hashchange", follow);
filter();
if (!follow() && N) pick(D.start[0], D.start[1]);
})();
