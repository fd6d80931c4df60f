// Lines that were added and removed between two texts.

export type Line = { kind: "same" | "added" | "removed" | "note"; text: string; before: number | null; after: number | null };

/** Maximum number of cells in the table of the longest common subsequence; beyond it, all old lines are removed and
 * all new ones added. */
const CELLS = 4_000_000;

/** The line-based diff of two texts. */
export function difference(before: string, after: string): Line[] {
  const old = split(before);
  const fresh = split(after);
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail += 1;
  const lines: Line[] = [];
  let left = 0;
  let right = 0;
  const same = (text: string): void => {
    left += 1;
    right += 1;
    lines.push({ kind: "same", text, before: left, after: right });
  };
  for (let index = 0; index < head; index += 1) same(old[index] ?? "");
  for (const [kind, text] of middle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail))) {
    if (kind === "same") same(text);
    else if (kind === "removed") lines.push({ kind, text, before: (left += 1), after: null });
    else lines.push({ kind, text, before: null, after: (right += 1) });
  }
  for (let index = tail; index > 0; index -= 1) same(old[old.length - index] ?? "");
  const [ended, ends] = [before.endsWith("\n"), after.endsWith("\n")];
  if (before !== "" && after !== "" && ended !== ends) {
    const text = ends ? "adds a line break at the end" : "removes the line break at the end";
    lines.push({ kind: "note", text, before: null, after: null });
  }
  return lines;
}

function split(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function* middle(old: string[], fresh: string[]): Generator<[Line["kind"], string]> {
  const width = fresh.length + 1;
  if (old.length * fresh.length > CELLS) {
    for (const text of old) yield ["removed", text];
    for (const text of fresh) yield ["added", text];
    return;
  }
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number): number => longest[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = fresh.length - 1; column >= 0; column -= 1) {
      longest[row * width + column] = old[row] === fresh[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  let row = 0;
  let column = 0;
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && old[row] === fresh[column]) {
      yield ["same", old[row] ?? ""];
      row += 1;
      column += 1;
    } else if (row < old.length && (column === fresh.length || at(row + 1, column) >= at(row, column + 1))) {
      yield ["removed", old[row] ?? ""];
      row += 1;
    } else {
      yield ["added", fresh[column] ?? ""];
      column += 1;
    }
  }
}

/** The lines of a patch in Codex's format (`*** Begin Patch`) or diff's. */
export function patch(text: string): Line[] {
  const lines = split(text);
  // Only a unified diff marks its file names with signs.
  const names = !text.includes("*** Begin Patch");
  return lines.map((line, index): Line => {
    const isName =
      names &&
      ((line.startsWith("--- ") && lines[index + 1]?.startsWith("+++ ") === true) ||
        (line.startsWith("+++ ") && lines[index - 1]?.startsWith("--- ") === true));
    const kind = isName ? "same" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
    return { kind, text: kind === "same" ? line : line.slice(1), before: null, after: null };
  });
}
