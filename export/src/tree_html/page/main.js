// What is shown, by the address: `#leaf=ID&entry=ID`, or pi's `?leafId=ID&targetId=ID`; with `open=all` nothing is folded.

const hashOf = (leaf, target) => {
  const parts = new URLSearchParams();
  const idOf = (at) => (at >= 0 && isText(entries[at].id) ? entries[at].id : null);
  if (idOf(leaf) !== null) parts.set("leaf", idOf(leaf));
  if (idOf(target) !== null) parts.set("entry", idOf(target));
  return `#${parts}`;
};

const show = (leaf, target, keepAddress) => {
  const isOther = leaf !== view.leaf;
  view.leaf = leaf;
  view.target = target;
  if (isOther) {
    const path = leaf < 0 ? [] : pathTo(leaf);
    view.path = new Set(path);
    drawPath(path);
    layOut();
  }
  view.cursor = Math.max(0, view.rows.findIndex((row) => row.at === target));
  reveal(view.cursor);
  drawRows(true);
  if (target >= 0) scrollToEntry(target);
  if (!keepAddress) { try { history.replaceState(null, "", hashOf(leaf, target)); } catch { /* an address that cannot be changed is left */ } }
};

// A row leads to its entry: on this path when it lies there, else on the newest one through it.
const choose = (at) => {
  show(view.path.has(at) ? view.leaf : newestBelow(at), at);
  side.classList.remove("open");
};

const fromAddress = () => {
  const hash = new URLSearchParams(location.hash.slice(1));
  const query = new URLSearchParams(location.search);
  const target = places.get(hash.get("entry") ?? query.get("targetId")) ?? -1;
  let leaf = places.get(hash.get("leaf") ?? query.get("leafId")) ?? -1;
  if (leaf < 0) leaf = target >= 0 && !pathTo(data.leaf).includes(target) ? newestBelow(target) : data.leaf;
  const isOn = target >= 0 && pathTo(leaf).includes(target);
  show(leaf, isOn ? target : -1, true);
  if (!isOn) mainBox.scrollTop = 0;
};

const tellAbout = () => {
  const header = data.header;
  let [input, out, cost] = [0, 0, 0];
  const models = new Set();
  let prompts = 0;
  for (const entry of entries) {
    const said = message(entry);
    if (said.role === "user") prompts += 1;
    if (said.role !== "assistant") continue;
    if (isText(said.model)) models.add(said.model);
    const { usage } = said;
    if (!usage || typeof usage !== "object") continue;
    const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
    input += number(usage.input) + number(usage.cacheRead) + number(usage.cacheWrite);
    out += number(usage.output);
    cost += number(usage.cost && usage.cost.total);
  }
  const first = entries.find((entry) => role(entry) === "user");
  const title = data.title || (first && plainLine(textOf(message(first).content), 90)) || "Session";
  document.title = plainLine(title, 90);
  const list = make("dl");
  const tell = (name, value) => { if (value) list.append(make("div", "", make("dt", "", name), make("dd", "", visible(value)))); };
  const began = new Date(Date.parse(header.timestamp));
  tell("began", Number.isNaN(began.getTime()) ? "" : began.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }));
  tell("in", isText(header.cwd) ? header.cwd : "");
  tell("model", [...models].slice(0, 4).join(", "));
  tell("prompts", String(prompts));
  tell("tokens", input + out ? `${input.toLocaleString("en")} in, ${out.toLocaleString("en")} out` : "");
  tell("cost", cost ? `$${cost.toFixed(2)}` : "");
  tell("id", isText(header.id) ? header.id : "");
  tell("forked from", isText(header.parentSession) ? header.parentSession : "");
  document.getElementById("about").append(make("h1", "", visible(title)), list);
};

const themes = ["auto", "light", "dark"];
const themeButton = document.getElementById("theme");
themeButton.addEventListener("click", () => {
  const next = themes[(themes.findIndex((name) => document.documentElement.classList.contains(name)) + 1 || 1) % 3];
  document.documentElement.className = next === "auto" ? "" : next;
  themeButton.textContent = `Theme: ${next}`;
});

const openButton = document.getElementById("opened");
const setOpened = (to) => {
  opened = to;
  openButton.setAttribute("aria-pressed", String(opened));
  openButton.textContent = opened ? "Close all" : "Open all";
  for (const piece of pieces) if (piece.full) { piece.full = false; fillPiece(piece); }
};
openButton.addEventListener("click", () => setOpened(!opened));

document.getElementById("menu").addEventListener("click", () => side.classList.toggle("open"));
mainBox.addEventListener("click", (event) => { if (!event.target.closest("#bar")) side.classList.remove("open"); });

const split = document.getElementById("split");
split.addEventListener("pointerdown", (event) => { split.setPointerCapture(event.pointerId); split.classList.add("held"); });
split.addEventListener("pointermove", (event) => {
  if (!split.classList.contains("held")) return;
  const width = Math.max(180, Math.min(event.clientX, window.innerWidth - 320));
  document.documentElement.style.setProperty("--sidebar", `${width}px`);
});
split.addEventListener("pointerup", () => split.classList.remove("held"));

const keysBox = document.getElementById("keys");
const KEYS = [["/", "search"], ["t", "go to the tree"], ["m", "go to the conversation"], ["1 … 5", "which entries are shown"], ["n  p", "next, previous prompt"], ["o", "open or close all"], ["↑ ↓ ← →  Enter", "in the tree: move, fold, show"], ["Esc", "leave the search"]];
keysBox.append(make("table", "", make("tbody", "", ...KEYS.map(([keys, what]) => make("tr", "", make("td", "", make("kbd", "", keys)), make("td", "", what))))));
const help = () => { keysBox.hidden = !keysBox.hidden; };
document.getElementById("help").addEventListener("click", help);

// The next prompt on the path from the one that is marked.
const toPrompt = (step) => {
  const prompts = [...view.path].filter((at) => role(entries[at]) === "user");
  const path = [...view.path];
  const here = view.target >= 0 ? path.indexOf(view.target) : -1;
  const ahead = step > 0 ? prompts.find((at) => path.indexOf(at) > here) : prompts.reverse().find((at) => path.indexOf(at) < here);
  if (ahead !== undefined) show(view.leaf, ahead);
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    keysBox.hidden = true;
    side.classList.remove("open");
    if (document.activeElement === searchBox) {
      searchBox.value = "";
      searchBox.dispatchEvent(new Event("input"));
      treeBox.focus();
    }
    return;
  }
  if (event.target instanceof Element && event.target.closest("input, textarea, select")) return;
  const names = Object.keys(FILTERS);
  const number = Number(event.key);
  if (event.key === "/") { side.classList.add("open"); searchBox.focus(); searchBox.select(); }
  else if (event.key === "t") { side.classList.add("open"); treeBox.focus(); }
  else if (event.key === "m") mainBox.focus();
  else if (event.key === "n") toPrompt(1);
  else if (event.key === "p") toPrompt(-1);
  else if (event.key === "o") openButton.click();
  else if (event.key === "?") help();
  else if (number >= 1 && number <= names.length) setFilter(names[number - 1]);
  else return;
  event.preventDefault();
});

window.addEventListener("hashchange", fromAddress);
tellAbout();
setFilter("default");
setOpened(new URLSearchParams(location.hash.slice(1)).get("open") === "all");
fromAddress();
