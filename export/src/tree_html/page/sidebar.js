// The tree at the side. Only the rows that are in view are in the document, so that its length costs nothing.

const ROW = 26;
// So many steps of indentation are drawn at most.
const GUIDES = 7;
const side = document.getElementById("side");
const treeBox = document.getElementById("tree");
const rowsBox = document.getElementById("rows");
const searchBox = document.getElementById("search");
const countBox = document.getElementById("count");

const view = { filter: "default", words: [], folded: new Set(), rows: [], leaf: -1, target: -1, path: new Set(), cursor: 0 };

// Which entries are rows, and how far each is indented: further only below a place where branches part.
const layOut = () => {
  const [, shown] = FILTERS[view.filter];
  const upper = new Int32Array(entries.length).fill(-1);
  const isShown = new Uint8Array(entries.length);
  const count = new Int32Array(entries.length + 1);
  for (const at of order) {
    const parent = parents[at];
    upper[at] = parent < 0 ? -1 : isShown[parent] ? parent : upper[parent];
    const entry = entries[at];
    const kept = !isHidden(entry) && (shown(entry, at) || (at === view.leaf && view.filter === "default" && !view.words.length));
    if (!kept || !view.words.every((word) => hay(at).includes(word))) continue;
    isShown[at] = 1;
    count[upper[at] + 1] += 1;
  }
  const depth = new Int32Array(entries.length);
  const isAway = new Uint8Array(entries.length);
  view.rows = [];
  let total = 0;
  for (const at of order) {
    if (!isShown[at]) continue;
    total += 1;
    const parent = upper[at];
    depth[at] = (parent < 0 ? 0 : depth[parent]) + (count[parent + 1] > 1 ? 1 : 0);
    isAway[at] = parent >= 0 && (isAway[parent] || view.folded.has(parent)) ? 1 : 0;
    if (!isAway[at]) view.rows.push({ at, depth: depth[at], parts: count[at + 1], begins: count[parent + 1] > 1 });
  }
  countBox.replaceChildren(
    make("span", "", view.words.length || view.filter !== "all" ? `${total.toLocaleString("en")} of ${entries.length.toLocaleString("en")} entries` : `${total.toLocaleString("en")} entries`),
    make("span", "", `${data.leaves} ${data.leaves === 1 ? "branch" : "branches"}`),
  );
  rowsBox.style.height = `${view.rows.length * ROW}px`;
  view.cursor = Math.max(0, view.rows.findIndex((row) => row.at === view.target));
  drawRows(true);
};

const row = ({ at, depth, parts, begins }, number) => {
  const [who, what, cls] = brief(at);
  const node = make("div", `row ${cls}`);
  node.style.top = `${number * ROW}px`;
  node.id = `row-${number}`;
  node.setAttribute("role", "treeitem");
  node.setAttribute("aria-level", String(depth + 1));
  node.setAttribute("aria-setsize", String(view.rows.length));
  node.setAttribute("aria-posinset", String(number + 1));
  const isOn = view.path.has(at);
  if (isOn) node.classList.add("on");
  const isAt = number === view.cursor;
  node.setAttribute("aria-selected", String(isAt));
  if (isAt) node.classList.add("at");
  // A deep tree is cut at the left, not drawn out to the right.
  const cut = Math.max(0, depth - GUIDES);
  if (cut) node.append(make("span", "cut", `${cut}·`));
  if (depth) node.append(make("span", "guides", ...Array.from({ length: depth - cut }, (_, n) => make("span", begins && n === depth - cut - 1 ? "guide begins" : "guide"))));
  if (parts > 1) {
    const isFolded = view.folded.has(at);
    node.setAttribute("aria-expanded", String(!isFolded));
    const fold = make("span", "fold", isFolded ? "▸" : "▾");
    fold.title = isFolded ? "Unfold the branches" : "Fold the branches";
    fold.addEventListener("click", (event) => { event.stopPropagation(); foldAt(at, !isFolded); });
    node.append(fold);
  }
  node.append(make("span", "who", plainLine(who, 24)), make("span", "what", plainLine(what, 140)));
  if (labels.has(at)) node.append(make("span", "chip", plainLine(labels.get(at), 30)));
  if (at === data.leaf) node.append(make("span", "leaf", "● now"));
  node.title = plainLine(what, 400);
  node.addEventListener("click", () => { view.cursor = number; choose(at); });
  return node;
};

let drawn = [0, 0];
const drawRows = (anew) => {
  const first = Math.max(0, Math.floor(treeBox.scrollTop / ROW) - 10);
  const last = Math.min(view.rows.length, Math.ceil((treeBox.scrollTop + treeBox.clientHeight) / ROW) + 10);
  if (!anew && drawn[0] === first && drawn[1] === last) return;
  drawn = [first, last];
  const nodes = [];
  for (let number = first; number < last; number++) nodes.push(row(view.rows[number], number));
  rowsBox.replaceChildren(...(nodes.length ? nodes : [make("div", "empty", "Nothing is found.")]));
  if (view.rows[view.cursor]) treeBox.setAttribute("aria-activedescendant", `row-${view.cursor}`);
};

const reveal = (number) => {
  const top = number * ROW;
  if (top < treeBox.scrollTop + ROW) treeBox.scrollTop = top - 3 * ROW;
  else if (top > treeBox.scrollTop + treeBox.clientHeight - 2 * ROW) treeBox.scrollTop = top - treeBox.clientHeight + 4 * ROW;
};

const moveTo = (number) => {
  view.cursor = Math.max(0, Math.min(view.rows.length - 1, number));
  reveal(view.cursor);
  drawRows(true);
};

const foldAt = (at, folded) => {
  if (folded) view.folded.add(at);
  else view.folded.delete(at);
  const top = treeBox.scrollTop;
  layOut();
  view.cursor = Math.max(0, view.rows.findIndex((shown) => shown.at === at));
  treeBox.scrollTop = top;
  drawRows(true);
};

treeBox.addEventListener("scroll", () => requestAnimationFrame(() => drawRows(false)), { passive: true });
new ResizeObserver(() => drawRows(false)).observe(treeBox);

treeBox.addEventListener("keydown", (event) => {
  const at = view.rows[view.cursor];
  const page = Math.max(1, Math.floor(treeBox.clientHeight / ROW) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (moves[event.key] !== undefined) moveTo(view.cursor + moves[event.key]);
  else if (event.key === "Enter" || event.key === " ") { if (at) choose(at.at); }
  else if (event.key === "ArrowLeft" && at) {
    if (at.parts > 1 && !view.folded.has(at.at)) foldAt(at.at, true);
    else for (let n = view.cursor - 1; n >= 0; n--) if (view.rows[n].depth < at.depth || view.rows[n].parts > 1) { moveTo(n); break; }
  } else if (event.key === "ArrowRight" && at) { if (view.folded.has(at.at)) foldAt(at.at, false); else moveTo(view.cursor + 1); }
  else return;
  event.preventDefault();
});

const filterBox = document.getElementById("filters");
const setFilter = (name) => {
  view.filter = name;
  for (const button of filterBox.children) button.setAttribute("aria-pressed", String(button.dataset.filter === name));
  layOut();
  reveal(view.cursor);
  drawRows(true);
};
for (const [name, [words]] of Object.entries(FILTERS)) {
  const button = make("button", "", words);
  button.type = "button";
  button.dataset.filter = name;
  button.addEventListener("click", () => setFilter(name));
  filterBox.append(button);
}

let typed = 0;
searchBox.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(() => {
    view.words = searchBox.value.toLowerCase().split(/\s+/).filter(Boolean);
    layOut();
    if (view.words.length) treeBox.scrollTop = 0;
    else reveal(view.cursor);
    drawRows(true);
  }, 80);
});
searchBox.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); treeBox.focus(); }
});
