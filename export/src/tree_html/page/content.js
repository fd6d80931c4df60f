// The conversation: the path to a leaf. It is cut into pieces; those far from the view are empty boxes.

const mainBox = document.getElementById("main");
const entriesBox = document.getElementById("entries");

const stamp = (at) => {
  const when = time(entries[at]);
  const anchor = make("a", "", when ? when.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" }) : "link");
  anchor.href = hashOf(view.leaf, at);
  anchor.title = "Link to this entry";
  return anchor;
};

const head = (at, who, more) => {
  const chip = labels.has(at) ? make("span", "chip", visible(labels.get(at))) : null;
  return make("div", "head", make("b", "", visible(who)), more ? make("span", "", visible(more)) : null, chip, stamp(at));
};

const folded = (title, cls, inside) => {
  const box = make("details", cls, make("summary", "", title));
  const fill = () => { if (box.open && box.childElementCount === 1) box.append(inside()); };
  box.addEventListener("toggle", fill);
  if (opened) { box.open = true; fill(); }
  return box;
};

const json = (value) => code(JSON.stringify(value, null, 2) ?? "");

const edited = (before, after) => {
  const node = make("pre");
  for (const [mark, cls, text] of [["-", "minus", before], ["+", "plus", after]]) {
    for (const line of text.slice(0, SHOWN).split("\n")) node.append(make("span", cls, `${mark} `, visible(line)), "\n");
  }
  return node;
};

const callCard = (call) => {
  const given = call.arguments && typeof call.arguments === "object" ? call.arguments : {};
  const isLong = isText(given.command) && given.command.includes("\n");
  const line = isLong ? "" : plainLine(about(given), 300);
  const card = make("div", "card", make("div", "name", make("b", "", visible(String(call.name))), visible(line)));
  if (isText(given.oldText) && isText(given.newText)) card.append(edited(given.oldText, given.newText));
  else if (isText(given.content)) card.append(folded("content", "", () => code(given.content)));
  else if (isLong) card.append(code(given.command));
  else if (Object.keys(given).length > 1) card.append(folded("arguments", "", () => json(given)));
  return card;
};

const output = (title, text, bad, images) => {
  const lines = text.split("\n", 13).length;
  const card = make("div", bad ? "card bad" : "card");
  const size = text.length > 2000 ? ` (${text.length.toLocaleString("en")} characters)` : "";
  const name = make("span", "", visible(title), size);
  if (lines > 12 || text.length > 2000) card.append(folded(name, bad ? "bad" : "", () => code(text)));
  else card.append(make("div", "name", make("b", "", name)), text ? code(text) : "");
  card.append(...images.map(picture));
  return card;
};

const images = (content) => blocks(content).filter((block) => block.type === "image");

const spent = (usage) => {
  if (!usage || typeof usage !== "object") return "";
  const parts = [["in", usage.input], ["cached", usage.cacheRead], ["out", usage.output]].filter(([, n]) => typeof n === "number" && n > 0);
  return parts.map(([name, n]) => `${n.toLocaleString("en")} ${name}`).join(" · ");
};

const answer = (said) => {
  const parts = blocks(said.content).map((block) => {
    if (block.type === "thinking") return isText(block.thinking) && block.thinking.trim() ? folded("thinking", "thinking", () => make("div", "", prose(block.thinking))) : null;
    if (block.type === "toolCall") return callCard(block);
    if (block.type === "image") return picture(block);
    return isText(block.text) ? prose(block.text) : json(block);
  });
  if (said.stopReason === "error" || said.stopReason === "aborted") {
    parts.push(make("div", "failed", visible(`${said.stopReason}: ${said.errorMessage ?? ""}`.replace(/: $/, ""))));
  }
  return parts;
};

const note = (at, words) => make("div", "note", make("span", "", visible(words)), stamp(at));

const summary = (at, who, text, more) => {
  const box = folded(plainLine(bare(text), 110) || "(empty)", "", () => make("div", "", prose(text)));
  return [head(at, who, more), make("div", "card", box)];
};

const saidIn = (at) => {
  const entry = entries[at];
  const said = message(entry);
  const [who, what] = brief(at);
  switch (entry.type) {
    case "message":
      switch (said.role) {
        case "user": return [head(at, "You"), make("div", "body", isText(textOf(said.content)) ? shortened(textOf(said.content), (part) => make("div", "plain", visible(part))) : "", ...images(said.content).map(picture))];
        case "assistant": return [head(at, String(said.model ?? "Agent"), spent(said.usage)), ...answer(said)];
        case "toolResult": {
          const call = called.get(said.toolCallId);
          const title = `${said.toolName ?? "tool"}${said.isError ? " failed" : ""}${call && about(call.arguments) ? ": " + plainLine(about(call.arguments), 100) : ""}`;
          return [output(title, textOf(said.content), said.isError === true, images(said.content))];
        }
        case "bashExecution": return [head(at, "You ran"), output(`! ${said.command ?? ""}`, String(said.output ?? ""), Boolean(said.exitCode), [])];
        case "system": return [make("div", "card", folded("system prompt", "", () => code(textOf(said.content))))];
        default: return [head(at, who), prose(textOf(said.content)), ...images(said.content).map(picture)];
      }
    case "compaction": return summary(at, "Compaction", String(entry.summary ?? ""), typeof entry.tokensBefore === "number" ? `${entry.tokensBefore.toLocaleString("en")} tokens before` : "");
    case "branch_summary": return summary(at, "Summary of a branch that was left", String(entry.summary ?? ""));
    case "custom_message": return entry.display ? [head(at, who), prose(textOf(entry.content))] : [make("div", "card", folded(`${who} (read by the model only)`, "", () => make("div", "", prose(textOf(entry.content)))))];
    case "model_change": return [note(at, `model: ${what}`)];
    case "thinking_level_change": return [note(at, `thinking: ${what}`)];
    case "session_info": return [note(at, `named: ${what}`)];
    case "label": return [note(at, `label: ${what}`)];
    default: return [make("div", "card", folded(plainLine(`${who} ${what}`, 100), "", () => json(entry)))];
  }
};

// Where branches part, the way to the others.
const branches = (at) => {
  const ways = below[at].filter((way) => !isHidden(entries[way]));
  if (ways.length < 2) return null;
  const holder = make("div", "branches", `${ways.length} ways from here`);
  for (const way of ways.slice(0, 12)) {
    // What is first said on it tells more than a change of settings.
    let shown = way;
    while (isSetting(entries[shown]) && below[shown].length === 1) shown = below[shown][0];
    const button = make("button", "", visible(plainLine(brief(shown)[1] || brief(shown)[0], 60)));
    button.type = "button";
    if (view.path.has(way)) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => show(newestBelow(way), way));
    holder.append(button);
  }
  return holder;
};

const entryNode = (at) => {
  const entry = entries[at];
  const cls = entry.type === "message" ? `e-${/^[A-Za-z]+$/.test(role(entry)) ? role(entry) : "message"}` : "e-other";
  const node = make("article", `entry ${cls}`, ...saidIn(at), branches(at));
  node.dataset.at = String(at);
  if (at === view.target) node.classList.add("target");
  return node;
};

const PIECE = 40;
let pieces = [];
let opened = false;

const fillPiece = (piece) => {
  if (piece.full) return;
  piece.full = true;
  piece.node.style.minHeight = "";
  piece.node.replaceChildren(...piece.list.map(entryNode));
};
const emptyPiece = (piece) => {
  if (!piece.full) return;
  piece.node.style.minHeight = `${piece.node.offsetHeight}px`;
  piece.full = false;
  piece.node.replaceChildren();
};
const watch = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    const piece = pieces[Number(target.dataset.piece)];
    if (piece && piece.node === target) (isIntersecting ? fillPiece : emptyPiece)(piece);
  }
}, { root: mainBox, rootMargin: "1600px 0px" });

const drawPath = (path) => {
  watch.disconnect();
  pieces = [];
  const shown = path.filter((at) => !isHidden(entries[at]));
  for (let from = 0; from < shown.length; from += PIECE) {
    const list = shown.slice(from, from + PIECE);
    const node = make("section");
    node.dataset.piece = String(pieces.length);
    node.style.minHeight = `${list.length * 90}px`;
    pieces.push({ node, list, full: false });
  }
  entriesBox.replaceChildren(...(pieces.length ? pieces.map((piece) => piece.node) : [make("p", "empty", "Nothing has been said yet.")]));
  for (const { node } of pieces) watch.observe(node);
};

const scrollToEntry = (at) => {
  const piece = pieces.find(({ list }) => list.includes(at));
  if (!piece) return;
  fillPiece(piece);
  const node = [...piece.node.children].find((child) => child.dataset.at === String(at));
  for (const old of entriesBox.querySelectorAll(".target")) old.classList.remove("target");
  node.classList.add("target");
  // What is filled in around it moves it again.
  let tries = 4;
  const settle = () => {
    node.scrollIntoView({ block: "start" });
    if (--tries) requestAnimationFrame(settle);
  };
  settle();
};
