// Parses agents' Markdown into blocks. No HTML: anything that looks like a tag is text. Images are not fetched, and
// links lead only to http and https.

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis" | "strike"; inside: Inline[] }
  | { kind: "link"; inside: Inline[]; href: string; host: string; title: string }
  | { kind: "image"; text: string; href: string; title: string };

export type Block =
  | { kind: "paragraph"; inside: Inline[] }
  | { kind: "heading"; level: number; inside: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: { done: boolean | null; blocks: Block[] }[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** Maximum nesting of quotes and lists; deeper ones are text. */
const DEPTH = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Parses a text into blocks. */
export function blocks(text: string, depth = 0): Block[] {
  const lines = text.split(/\r?\n/);
  const found: Block[] = [];
  let paragraph: string[] = [];
  const close = (): void => {
    if (paragraph.length > 0) found.push({ kind: "paragraph", inside: inlines(paragraph.join("\n")) });
    paragraph = [];
  };
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const fence = FENCE.exec(line);
    if (fence !== null) {
      close();
      const mark = fence[1] ?? "```";
      const body: string[] = [];
      for (index += 1; index < lines.length; index += 1) {
        const inner = lines[index] ?? "";
        if (inner.trim().startsWith(mark) && inner.trim().replaceAll(mark.charAt(0), "") === "") break;
        body.push(inner);
      }
      found.push({ kind: "code", language: (fence[2] ?? "").trim(), text: body.join("\n") });
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading !== null) {
      close();
      found.push({ kind: "heading", level: (heading[1] ?? "#").length, inside: inlines(heading[2] ?? "") });
      continue;
    }
    if (RULE.test(line) && (paragraph.length === 0 || !/^ {0,3}-+\s*$/.test(line))) {
      close();
      found.push({ kind: "rule" });
      continue;
    }
    if (depth < DEPTH && QUOTE.test(line)) {
      close();
      const body: string[] = [];
      for (; index < lines.length; index += 1) {
        const inner = QUOTE.exec(lines[index] ?? "");
        if (inner === null) break;
        body.push(inner[1] ?? "");
      }
      index -= 1;
      found.push({ kind: "quote", blocks: blocks(body.join("\n"), depth + 1) });
      continue;
    }
    const item = ITEM.exec(line);
    if (depth < DEPTH && item !== null && (paragraph.length === 0 || /^[-*+]|^1[.)]/.test(item[2] ?? ""))) {
      close();
      const [list, used] = readList(lines, index, depth);
      found.push(list);
      index += used - 1;
      continue;
    }
    if (line.includes("|") && DIVIDER.test(lines[index + 1] ?? "") && (lines[index + 1] ?? "").includes("-")) {
      close();
      const head = cells(line);
      const body: Inline[][][] = [];
      for (index += 2; index < lines.length && (lines[index] ?? "").includes("|"); index += 1) {
        body.push(cells(lines[index] ?? ""));
      }
      index -= 1;
      found.push({ kind: "table", head, rows: body });
      continue;
    }
    if (line.trim() === "") close();
    else paragraph.push(line);
  }
  close();
  return found;
}

function readList(lines: string[], from: number, depth: number): [Block, number] {
  const first = ITEM.exec(lines[from] ?? "");
  const indent = (first?.[1] ?? "").length;
  const ordered = /\d/.test(first?.[2] ?? "");
  const items: string[][] = [];
  let index = from;
  let blank = false;
  for (; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const item = ITEM.exec(line);
    const depthOf = /^\s*/.exec(line)?.[0].length ?? 0;
    if (item !== null && Math.abs((item[1] ?? "").length - indent) < 2 && /\d/.test(item[2] ?? "") === ordered) {
      items.push([item[4] ?? ""]);
    } else if (line.trim() === "") {
      items.at(-1)?.push("");
      blank = true;
      continue;
    } else if (depthOf > indent + 1) {
      items.at(-1)?.push(line.slice(Math.min(depthOf, indent + 2 + (ordered ? 1 : 0))));
    } else if (blank || HEADING.test(line) || FENCE.test(line) || item !== null) {
      break;
    } else {
      items.at(-1)?.push(line);
    }
    blank = false;
  }
  const start = Number.parseInt(first?.[2] ?? "1", 10) || 1;
  const list: Block = {
    kind: "list",
    ordered,
    start,
    items: items.map((body) => {
      const task = /^\[([ xX])\]\s+/.exec(body[0] ?? "");
      if (task !== null) body[0] = (body[0] ?? "").slice(task[0].length);
      return { done: task === null ? null : task[1] !== " ", blocks: blocks(body.join("\n"), depth + 1) };
    }),
  };
  return [list, Math.max(1, index - from)];
}

function cells(line: string): Inline[][] {
  const inner = line.trim().replace(/^\||\|$/g, "");
  return inner.split(/(?<!\\)\|/).map((cell) => inlines(cell.trim().replaceAll("\\|", "|")));
}

// One alternative per construct; each is bounded, so that a hostile text cannot make matching slow.
const INLINE =
  /(?<ticks>`+)(?<code>[^`]+)\k<ticks>(?!`)|(?<!\w)(?<strong>\*\*|__)(?=\S)(?<bold>[^\n]{1,2000}?\S|\S)\k<strong>(?!\w)|(?<strike>~~)(?<struck>[^~\n]{1,2000})~~|(?<!\w)(?<em>[*_])(?=[^\s*_])(?<soft>[^*_\n]{0,1000}[^\s*_])\k<em>(?!\w)|(?<image>!?)\[(?<label>[^\]\n]{0,1000})\]\((?<href>[^()\s]{1,2000})(?:\s+"(?<title>[^"\n]{0,500})")?\)|(?<bare>https?:\/\/[^\s<>"'`\])]{1,2000})|\\(?<literal>[!-/:-@[-`{-~])/gu;

/** Parses a line of text. */
export function inlines(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  const plain = (piece: string): void => {
    const last = found.at(-1);
    if (piece === "") return;
    if (last?.kind === "text") last.text += piece;
    else found.push({ kind: "text", text: piece });
  };
  if (depth > DEPTH) return text === "" ? [] : [{ kind: "text", text }];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    const groups = match.groups ?? {};
    plain(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (groups["code"] !== undefined) found.push({ kind: "code", text: groups["code"].trim() || groups["code"] });
    else if (groups["bold"] !== undefined) found.push({ kind: "strong", inside: inlines(groups["bold"], depth + 1) });
    else if (groups["struck"] !== undefined) found.push({ kind: "strike", inside: inlines(groups["struck"], depth + 1) });
    else if (groups["soft"] !== undefined) found.push({ kind: "emphasis", inside: inlines(groups["soft"], depth + 1) });
    else if (groups["href"] !== undefined) link(found, groups, match[0], depth, plain);
    else if (groups["bare"] !== undefined) {
      const trimmed = groups["bare"].replace(/[.,;:!?*_]+$/, "");
      const target = web(trimmed);
      if (target === null) plain(groups["bare"]);
      else {
        found.push({ kind: "link", inside: [{ kind: "text", text: trimmed }], ...target, title: "" });
        plain(groups["bare"].slice(trimmed.length));
      }
    } else plain(groups["literal"] ?? match[0]);
  }
  plain(text.slice(from));
  return found;
}

function link(found: Inline[], groups: Record<string, string | undefined>, whole: string, depth: number, plain: (text: string) => void): void {
  const target = web(groups["href"] ?? "");
  const label = groups["label"] ?? "";
  const title = groups["title"] ?? "";
  if (groups["image"] === "!") found.push({ kind: "image", text: label, href: groups["href"] ?? "", title });
  else if (target === null) plain(whole);
  else found.push({ kind: "link", inside: withoutLinks(inlines(label, depth + 1)), ...target, title });
}

// Links do not nest: the text of an inner link becomes text of the outer one.
const withoutLinks = (parts: Inline[]): Inline[] =>
  parts.flatMap((part) => (part.kind === "link" ? withoutLinks(part.inside) : "inside" in part ? [{ ...part, inside: withoutLinks(part.inside) }] : [part]));

function web(href: string): { href: string; host: string } | null {
  if (!/^https?:\/\//i.test(href)) return null;
  try {
    const url = new URL(href);
    return { href: url.href, host: url.host };
  } catch {
    return null;
  }
}
