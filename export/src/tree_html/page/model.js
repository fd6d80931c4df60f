// The session: entries, the tree they make, and what each says in one line. Nothing here walks the tree by recursion.

const data = JSON.parse(document.getElementById("data").textContent);
const entries = data.entries;
// Of each entry its parent's place, or -1; and the places of all, each before those below it.
const parents = data.parents;
const order = data.order;
const labels = new Map(data.labels);

const below = entries.map(() => []);
for (const at of order) if (parents[at] >= 0) below[parents[at]].push(at);
const places = new Map();
entries.forEach((entry, at) => { if (typeof entry.id === "string") places.set(entry.id, at); });

const isText = (value) => typeof value === "string";
const message = (entry) => (entry.type === "message" && entry.message && typeof entry.message === "object" ? entry.message : {});
const role = (entry) => (entry.type === "message" ? String(message(entry).role ?? "message") : "");
const blocks = (content) => {
  if (isText(content)) return [{ type: "text", text: content }];
  return Array.isArray(content) ? content.filter((block) => block && typeof block === "object") : [];
};
const textOf = (content) => blocks(content).filter((block) => isText(block.text)).map((block) => block.text).join("\n");
const calls = (entry) => (role(entry) === "assistant" ? blocks(message(entry).content).filter((block) => block.type === "toolCall") : []);

// What a call is about, in a line: its command, its file.
const about = (given) => {
  if (!given || typeof given !== "object") return "";
  for (const key of ["command", "pattern", "path", "file_path", "url", "query", "question", "task", "prompt"]) {
    if (isText(given[key])) return given[key];
  }
  const text = JSON.stringify(given);
  return text === "{}" ? "" : text;
};

const called = new Map();
for (const entry of entries) for (const call of calls(entry)) if (isText(call.id)) called.set(call.id, call);

// Markdown's signs are in the way in one line.
const bare = (text) => text.replace(/\*\*|`+|^#+\s/gm, "");

const time = (entry) => {
  const at = Date.parse(entry.timestamp);
  return Number.isNaN(at) ? null : new Date(at);
};

// Who, what, and the class for its colour.
const brief = (at) => {
  const entry = entries[at];
  const said = message(entry);
  switch (entry.type) {
    case "message":
      switch (said.role) {
        case "user": return ["you", textOf(said.content) || "(no text)", "k-user"];
        case "assistant": {
          const text = textOf(said.content);
          const bad = said.stopReason === "error" || said.stopReason === "aborted";
          const names = calls(entry).map((call) => call.name).join(", ");
          return ["agent", bare(text) || (bad ? String(said.errorMessage ?? said.stopReason) : names ? `calls ${names}` : "(no text)"), bad ? "k-bad" : "k-agent"];
        }
        case "toolResult": {
          const call = called.get(said.toolCallId);
          return [String(said.toolName ?? "tool"), (call && about(call.arguments)) || textOf(said.content), said.isError ? "k-toolResult k-bad" : "k-toolResult"];
        }
        case "bashExecution": return ["!", String(said.command ?? ""), "k-tool"];
        default: return [String(said.role ?? "message"), textOf(said.content), "k-other"];
      }
    case "compaction": return ["compaction", bare(String(entry.summary ?? "")), "k-other"];
    case "branch_summary": return ["branch", bare(String(entry.summary ?? "")), "k-other"];
    case "custom_message": return [String(entry.customType ?? "message"), textOf(entry.content), "k-other"];
    case "custom": return ["state", String(entry.customType ?? ""), "k-other"];
    case "label": return ["label", isText(entry.label) && entry.label ? entry.label : "(taken off)", "k-other"];
    case "model_change": return ["model", String(entry.modelId ?? entry.model ?? ""), "k-other"];
    case "thinking_level_change": return ["thinking", String(entry.thinkingLevel ?? ""), "k-other"];
    case "session_info": return ["name", String(entry.name ?? ""), "k-other"];
    default: return [String(entry.type ?? "entry"), "", "k-other"];
  }
};

// All that is searched, in small letters.
const hays = [];
const hay = (at) => {
  if (hays[at] !== undefined) return hays[at];
  const entry = entries[at];
  const said = message(entry);
  const [who, what] = brief(at);
  const parts = [who, what, labels.get(at), textOf(said.content), textOf(entry.content), said.command, said.output, said.errorMessage];
  for (const block of blocks(said.content)) {
    if (block.type === "toolCall") parts.push(block.name, JSON.stringify(block.arguments));
    if (isText(block.thinking)) parts.push(block.thinking);
  }
  return (hays[at] = parts.filter(isText).join("\n").toLowerCase());
};

// Our own note of where the leaf was: of interest to nobody.
const isHidden = (entry) => entry.type === "custom" && entry.customType === data.leafType;
const SETTINGS = ["label", "custom", "model_change", "thinking_level_change", "session_info", "session_init", "ttsr_injection", "context_edit", "usage"];
const isSetting = (entry) => SETTINGS.includes(entry.type) || role(entry) === "system";
const onlyCalls = (entry) => {
  const said = message(entry);
  return said.role === "assistant" && !textOf(said.content).trim() && said.stopReason !== "error" && said.stopReason !== "aborted";
};

const FILTERS = {
  default: ["Default", (entry) => !isSetting(entry) && !onlyCalls(entry)],
  "no-tools": ["No tools", (entry) => !isSetting(entry) && !onlyCalls(entry) && role(entry) !== "toolResult"],
  "user-only": ["User only", (entry) => role(entry) === "user"],
  "labeled-only": ["Labelled", (entry, at) => labels.has(at)],
  all: ["All", () => true],
};

// The places from the root to one.
const pathTo = (at) => {
  const path = [];
  for (const seen = new Set(); at >= 0 && !seen.has(at); at = parents[at]) {
    seen.add(at);
    path.push(at);
  }
  return path.reverse();
};

// The end of the newest branch through an entry.
const newestBelow = (at) => {
  for (const seen = new Set(); below[at].length && !seen.has(at); ) {
    seen.add(at);
    at = below[at][below[at].length - 1];
  }
  return at;
};
