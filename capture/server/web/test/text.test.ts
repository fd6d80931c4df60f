import assert from "node:assert/strict";
import { test } from "node:test";
import { BOLD, INVERSE, runs } from "../src/text/ansi";
import { difference, patch } from "../src/text/diff";
import { ago, basename, dollars, duration, short } from "../src/text/format";
import { type Block, blocks, type Inline, inlines } from "../src/text/markdown";
import { census, lookalikes, parts, visible } from "../src/text/visible";
import { random } from "./random";

test("characters that cannot be seen are escaped", () => {
  const cases: [string, string][] = [
    ["a\u202eb", "a\\u{202e}b"],
    ["a\u200bb", "a\\u{200b}b"],
    ["\x1b[31mred", "\\e[31mred"],
    ["a\x07", "a\\x07"],
    ["\u{e0041}tag", "\\u{e0041}tag"],
    ["\u2028x", "\\u{2028}x"],
    ["\u3164", "\\u{3164}"],
    ["\ufeff", "\\u{feff}"],
    ["\u061c", "\\u{61c}"],
    ["\u009b", "\\x9b"],
    ["\ue000", "\\u{e000}"],
    ["\ud800", "\\u{d800}"],
  ];
  for (const [text, wanted] of cases) {
    assert.equal(visible(text, "exact"), wanted);
    assert.equal(visible(text, "reading"), wanted);
  }
});

test("tabs and line ends stay, and in texts to read so do emoji sequences", () => {
  assert.equal(visible("a\tb\nc", "exact"), "a\tb\nc");
  assert.equal(visible("👩‍👩‍👧", "reading"), "👩‍👩‍👧");
  assert.equal(visible("👩‍👩", "exact"), "👩\\u{200d}👩");
  assert.equal(visible("a\u200db", "reading"), "a\\u{200d}b");
  assert.equal(visible("a\r\nb", "reading"), "a\nb");
  assert.equal(visible("a\r\nb", "exact"), "a\\r\nb");
  assert.equal(visible("a\u00a0b", "exact"), "a\\xa0b");
});

test("letters outside ASCII are marked where a person decides", () => {
  assert.deepEqual(parts("p\u0430y", "exact"), [
    { text: "p", escaped: false },
    { text: "\u0430", escaped: false, foreign: true },
    { text: "y", escaped: false },
  ]);
  assert.deepEqual(parts("p\u0430y"), [{ text: "p\u0430y", escaped: false }]);
});

test("nothing hidden is left, whatever the text", () => {
  const next = random(1);
  for (let round = 0; round < 2000; round += 1) {
    const text = Array.from({ length: next(12) }, () => String.fromCodePoint(next(4) === 0 ? next(0xe0200) : 0x2000 + next(0x80))).join("");
    const shown = visible(text, "exact");
    assert.doesNotMatch(shown, /[\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u);
    assert.equal(parts(text, "exact").filter((part) => part.escaped).length === 0, census(text).hidden === 0);
  }
});

test("what is hidden or foreign is counted", () => {
  assert.deepEqual(census("a\u200b\u0430\nb"), { characters: 5, lines: 2, hidden: 1, foreign: 1 });
  assert.deepEqual(census(""), { characters: 0, lines: 0, hidden: 0, foreign: 0 });
});

test("colours become runs, everything else stays in the text", () => {
  assert.deepEqual(runs("a\x1b[1;31mb\x1b[0mc"), [
    { text: "a", fg: null, bg: null, flags: 0 },
    { text: "b", fg: 1, bg: null, flags: BOLD },
    { text: "c", fg: null, bg: null, flags: 0 },
  ]);
  assert.deepEqual(runs("\x1b[38;2;255;0;7;48;5;300;7mx"), [{ text: "x", fg: "#ff0007", bg: 255, flags: INVERSE }]);
  assert.equal(
    runs("\x1b]0;title\x07\x1b[2Jx")
      .map((run) => run.text)
      .join(""),
    "\x1b]0;title\x07\x1b[2Jx",
  );
});

test("the runs of any text have its characters without the colours", () => {
  const next = random(2);
  for (let round = 0; round < 500; round += 1) {
    const text = Array.from({ length: next(8) }, () => ["x", "\x1b[", "31m", "\x1b[38;5;", "m", ";;", "\x1b[0m"][next(7)]).join("");
    assert.equal(
      runs(text)
        .map((run) => run.text)
        .join(""),
      text.replace(/\x1b\[[0-9;:]*m/g, ""),
    );
  }
});

test("differences lead from one text to the other", () => {
  const next = random(3);
  const line = () => "abcd"[next(4)] ?? "";
  for (let round = 0; round < 500; round += 1) {
    const before = Array.from({ length: next(9) }, line);
    const after = Array.from({ length: next(9) }, line);
    const lines = difference(before.join("\n"), after.join("\n"));
    assert.deepEqual(
      lines.filter(({ kind }) => kind === "same" || kind === "removed").map(({ text }) => text),
      before,
    );
    assert.deepEqual(
      lines.filter(({ kind }) => kind === "same" || kind === "added").map(({ text }) => text),
      after,
    );
  }
  assert.equal(difference("a", "a\n").at(-1)?.kind, "note");
});

test("a patch shows its signs", () => {
  const lines = patch("*** Update File: a\n@@\n-old\n+new\n same");
  assert.deepEqual(
    lines.map(({ kind }) => kind),
    ["same", "same", "removed", "added", "same"],
  );
  const kinds = (text: string) => patch(text).map(({ kind }) => kind);
  assert.deepEqual(kinds("--- a/x\n+++ b/x\n@@\n--x\n+++y"), ["same", "same", "same", "removed", "added"]);
  assert.deepEqual(kinds("*** Begin Patch\n*** Update File: a\n@@\n--- i\n+++ i\n*** End Patch"), ["same", "same", "same", "removed", "added", "same"]);
});

const plain = (inside: Inline[]): string =>
  inside.map((part) => ("inside" in part ? plain(part.inside) : part.kind === "image" ? `[${part.text}]` : part.text)).join("");
const links = (found: Block[]): string[] => {
  const hrefs: string[] = [];
  const inline = (parts: Inline[]): void => {
    for (const part of parts) {
      if (part.kind === "link") hrefs.push(part.href);
      if ("inside" in part) inline(part.inside);
    }
  };
  const walk = (list: Block[]): void => {
    for (const block of list) {
      if (block.kind === "paragraph" || block.kind === "heading") inline(block.inside);
      if (block.kind === "quote") walk(block.blocks);
      if (block.kind === "list") block.items.forEach((item) => walk(item.blocks));
      if (block.kind === "table") [block.head, ...block.rows].forEach((cells) => cells.forEach(inline));
    }
  };
  walk(found);
  return hrefs;
};

test("Markdown is read into blocks", () => {
  const found = blocks(
    "# Title\n\ntext *soft* **bold** `code`\n\n- one\n- [x] two\n  - deeper\n\n1. first\n2. second\n\n> quote\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---",
  );
  assert.deepEqual(
    found.map(({ kind }) => kind),
    ["heading", "paragraph", "list", "list", "quote", "code", "table", "rule"],
  );
  const list = found[2];
  assert.ok(list?.kind === "list" && list.items.length === 2 && list.items[1]?.done === true);
  assert.ok(
    list.items[1]?.blocks.some(({ kind }) => kind === "list"),
    "a list in a list",
  );
  const code = found[5];
  assert.ok(code?.kind === "code" && code.text === "fn main() {}" && code.language === "rust");
});

test("what looks like HTML is text, and only http links go anywhere", () => {
  const hostile =
    '<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) [b](data:text/html,x) ![c](https://evil.test/x.png) [d](https://ok.test/p "t") [e](//evil.test) <https://f.test>';
  const found = blocks(hostile);
  assert.deepEqual(links(found), ["https://ok.test/p", "https://f.test/"]);
  assert.ok(found[0]?.kind === "paragraph" && plain(found[0].inside).includes("<script>alert(1)</script>"));
});

test("a link shows where it goes", () => {
  const [part] = inlines("[https://good.test](https://evil.test/x)");
  assert.ok(part?.kind === "link" && part.host === "evil.test");
  assert.deepEqual(part.inside, [{ kind: "text", text: "https://good.test" }]);
});

test("no text is deep or hostile enough to break reading", () => {
  const hostile = [
    "*".repeat(20_000),
    "[".repeat(20_000),
    "> ".repeat(5_000),
    "- ".repeat(5_000),
    "`".repeat(20_000),
    "**a ".repeat(5_000),
    `${"  - x\n".repeat(2_000)}`,
    `${"|".repeat(10_000)}\n|-|`,
  ];
  for (const text of hostile) {
    assert.ok(blocks(text).length > 0, text.slice(0, 8));
  }
});

test("figures are short", () => {
  assert.equal(ago(59_999), "59 s");
  assert.equal(ago(3_600_000 * 5), "5 h");
  assert.equal(ago(-5), "0 s");
  assert.equal(duration(900), "900 ms");
  assert.equal(duration(65_000), "1 m 05 s");
  assert.equal(duration(120_000), "2 m");
  assert.equal(duration(3_600_000 * 3 + 60_000 * 7), "3 h 07 m");
  assert.equal(short(999), "999");
  assert.equal(short(12_345), "12.3k");
  assert.equal(short(1_200_000), "1.2M");
  assert.equal(dollars(null), "no price");
  assert.equal(dollars(0.004), "< $0.01");
  assert.equal(dollars(0), "$0.00");
  assert.equal(basename("/a/b/"), "b");
  assert.equal(basename("/"), "/");
});

test("letters that pass for Latin ones are counted, and those of any other text are not", () => {
  for (const text of [
    "",
    "ls -la",
    "请同时更新中文文档，（见导入.md）！",
    "größe — “naïve” café",
    "Она и он: а, о, с, у, рос",
    "π ≈ 3, α = 0.05",
    "🚀 日本語 ｶﾅ",
  ])
    assert.equal(lookalikes(text), 0, text);
  for (const [text, count] of [
    ["p\u0430ypal.com", 1],
    ["cd \u0441\u043e\u0440\u0430", 4],
    ["Это p\u0430y и он", 1],
    ["rm \uff41\uff42", 2],
    ["echo \u2212rf", 1],
    ["https://a.example\u2215b", 1],
  ] as const)
    assert.equal(lookalikes(text), count, text);
});
