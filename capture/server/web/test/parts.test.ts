import assert from "node:assert/strict";
import { test } from "node:test";
import { url } from "../src/api/client";
import type { OpenApproval } from "../src/api/routes";
import { answers } from "../src/approval/questions";
import { readable, request, sameRequest } from "../src/approval/request";
import { reversed } from "../src/marks";
import { roundUp, scale } from "../src/parts/chart";
import { Heights } from "../src/parts/heights";
import { type Segment, visibleSegments } from "../src/parts/lane";
import { score } from "../src/parts/palette";
import { pieces } from "../src/parts/search";
import { rolledUp } from "../src/parts/sessions";
import { bytes } from "../src/push";
import { page } from "../src/router";
import { requestOf } from "../src/session/item";
import { broken, heard, silent } from "../src/session/saying";
import { keep, known } from "../src/session/whole";
import { cells, held } from "../src/terminal/cells";
import { colours, contrast, PALETTES, shades } from "../src/terminal/colours";
import { restingPlace } from "../src/terminal/follow";
import { joined, keyOf, patched } from "../src/terminal/grid";
import { clock, moment, within } from "../src/text/format";
import { titleOf } from "../src/text/title";
import { deviceName } from "../src/views/pair";
import { random } from "./random";

test("heights are those of a plain sum, whatever is measured", () => {
  const next = random(5);
  for (let round = 0; round < 60; round += 1) {
    const heights = new Heights(20);
    let plain: number[] = [];
    for (let step = 0; step < 60; step += 1) {
      if (next(3) === 0) {
        const length = next(200);
        heights.resize(length);
        plain = Array.from({ length }, (_, index) => plain[index] ?? 20);
      } else if (plain.length > 0) {
        const index = next(plain.length);
        const height = next(90);
        assert.equal(heights.set(index, height), height - (plain[index] ?? 0));
        plain[index] = height;
      }
      const total = plain.reduce((sum, height) => sum + height, 0);
      assert.equal(heights.total(), total);
      const upTo = next(plain.length + 1);
      assert.equal(
        heights.top(upTo),
        plain.slice(0, upTo).reduce((sum, height) => sum + height, 0),
      );
      if (total > 0) {
        const offset = next(total);
        const found = heights.at(offset);
        assert.ok(heights.top(found) <= offset && offset < heights.top(found) + heights.get(found), `${offset} in ${found}`);
      }
    }
  }
});

test("what is said after a gap is not joined to what was said before it", () => {
  let saying = heard(silent(true), "The first half");
  saying = broken(saying);
  assert.equal(saying.text, "The first half", "it stays until more is said");
  saying = heard(saying, "rd of another sentence");
  assert.deepEqual([saying.text, saying.cut], ["of another sentence", true]);
  saying = heard(saying, " goes on.");
  assert.deepEqual([saying.text, saying.cut], ["of another sentence goes on.", true]);
});

test("addresses name pages", () => {
  assert.deepEqual(page("/"), { name: "home" });
  assert.deepEqual(page("/s/A%20B"), { name: "session", id: "A B" });
  assert.deepEqual(page("/approvals/X"), { name: "approvals", id: "X" });
  assert.deepEqual(page("/approvals"), { name: "approvals", id: null });
  for (const path of ["/s", "/nothing", "/s/a/b", "/overview/x"]) assert.deepEqual(page(path), { name: "missing" });
  assert.deepEqual(page("/s/%E0%A4"), { name: "session", id: "%E0%A4" });
});

test("parts of a path and parameters are encoded", () => {
  assert.equal(url("GET /api/v1/sessions/{id}/events", { id: "../x?y#z" }), "/api/v1/sessions/..%2Fx%3Fy%23z/events");
  assert.equal(
    url("GET /api/v1/sessions", {}, { state: ["running", "idle"], cursor: undefined, q: "a&b" }),
    "/api/v1/sessions?state=running,idle&q=a%26b".replace(",", "%2C"),
  );
});

const approval = (more: Partial<OpenApproval>): OpenApproval =>
  ({
    id: "A",
    session_id: "S",
    provider: "claude",
    kind: null,
    tool: null,
    command: null,
    paths: [],
    subject: null,
    exact: true,
    cwd: "/p",
    ...more,
  }) as OpenApproval;

test("a command is shown whole, and the rest of its input beside it", () => {
  const found = request(
    approval({ kind: "command", command: "ls -la\nrm x", input: '{"command":"ls -la\\nrm x","description":"list","timeout":5,"run_in_background":true}' }),
  );
  assert.deepEqual(found, {
    body: { kind: "command", text: "ls -la\nrm x", whole: true },
    said: "list",
    rest: [
      ["timeout", "5"],
      ["run_in_background", "true"],
    ],
  });
});

test("a command that the input words otherwise is shown twice", () => {
  const found = request(approval({ kind: "command", command: "ls", input: '{"command":["bash","-lc","ls; rm x"]}' }));
  assert.ok(readable(found).includes("rm x"));
});

test("nothing of an input is left out, whatever its shape", () => {
  const inputs = [
    { kind: "edit", input: { file_path: "/a", old_string: "one", new_string: "two", replace_all: true } },
    { kind: "edit", input: { file_path: "/a", edits: [{ old_string: "one", new_string: "two", replace_all: true }] } },
    { kind: "edit", input: { file_path: "/a", edits: [{ old_string: "one", new_string: "two" }], extra: "kept" } },
    { kind: "edit", input: { path: "a", edits: [{ old: "one", new: "two" }] } },
    { kind: "edit", input: { path: "a", edits: [{ old: "one", new: "two", old_string: "three", new_string: "four" }] } },
    { kind: "write", input: { file_path: "/a", content: "whole\ntext" } },
    { kind: "mcp", input: { content: "text", nested: { deep: ["value"] } } },
    { kind: "plan", input: { plan: "1. go", note: "kept" } },
    { kind: "question", input: { questions: "not a list" } },
    { kind: "fetch", input: { url: "https://a.test", prompt: "read it" }, url: "https://a.test" },
    { kind: null, input: { anything: "at all" } },
  ];
  const leaves = (value: unknown): string[] => (typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [String(value)]);
  for (const { input, ...more } of inputs) {
    const shown = readable(request(approval({ ...(more as Partial<OpenApproval>), input: JSON.stringify(input) })));
    for (const leaf of leaves(input)) for (const line of leaf.split("\n")) assert.ok(shown.includes(line), `${JSON.stringify(input)}: ${line}`);
  }
  assert.equal(readable(request(approval({ input: "not json" }))), "not json");
  // A number that cannot be represented in the page, and one that is parsed as another.
  for (const number of ["9007199254740993", "0.10000000000000000555", "1e400"]) {
    const input = `{"to_account":${number}}`;
    assert.ok(readable(request(approval({ kind: "mcp", input }))).includes(number), number);
  }
});

test("a path is relative to its directory only if it reads as what it is", () => {
  for (const [path, shown] of [
    ["/p/src/a.ts", "src/a.ts"],
    ["/p/.env", ".env"],
    ["/p/../etc/passwd", "/p/../etc/passwd"],
    ["/p/src/../../etc/passwd", "/p/src/../../etc/passwd"],
    ["/p//etc/passwd", "/p//etc/passwd"],
    ["/p/./a", "/p/./a"],
    ["/p/~/a", "/p/~/a"],
    ["/p/C:/a", "/p/C:/a"],
    ["/p/ /a", "/p/ /a"],
    ["/p/a, /q/b", "/p/a, /q/b"],
    ["/pp/a", "/pp/a"],
    ["/p", "/p"],
    ["/q/a", "/q/a"],
    ["../a", "../a"],
  ] as const)
    assert.equal(within(path, "/p"), shown);
  assert.equal(within("/p/a", null), "/p/a");
  assert.equal(within("/p/a", "/"), "/p/a");
});

test("what is only seen on a screen is shown with its subject", () => {
  const { body } = request(approval({ kind: "command", input: null, exact: false, question: "Do you want to proceed?", subject: "mv src /mnt/share" }));
  assert.deepEqual(body, { kind: "other", text: "Do you want to proceed?\nmv src /mnt/share", whole: false });
});

test("a list of edits is never hidden behind a single one", () => {
  const input = { file_path: "a", edits: [{ old_string: "x", new_string: "y", replace_all: true }], old_string: "teh", new_string: "the" };
  assert.equal(request(approval({ kind: "edit", input: JSON.stringify(input) })).body.kind, "other");
  const cell = { notebook_path: "a.ipynb", cell_id: "1", new_source: "print(1)", edit_mode: "delete" };
  const { body, rest } = request(approval({ kind: "edit", input: JSON.stringify(cell) }));
  assert.ok(body.kind === "changes" && body.files[0]?.replaces === undefined);
  assert.ok(rest.some(([name, value]) => name === "edit_mode" && value === "delete"));
});

test("another tool is no edit and no plan, whatever its fields are called", () => {
  for (const input of [{ file_path: "README.md", old_string: "teh", new_string: "the" }, { path: ".env", content: "A=1" }, { plan: "read" }]) {
    assert.equal(request(approval({ kind: "mcp", input: JSON.stringify(input) })).body.kind, "other");
  }
});

test("questions are answered by option, by several, or by a text", () => {
  const questions = [
    { question: "Which?", header: null, options: [{ label: "A", description: null }], several: false },
    { question: "Parts?", header: null, options: [], several: true },
  ];
  assert.equal(answers(questions, { 0: { chosen: ["A"], other: "" } }), null);
  assert.deepEqual(answers(questions, { 0: { chosen: ["A"], other: "" }, 1: { chosen: ["x", "y"], other: "z" } }), { "Which?": "A", "Parts?": "x, y, z" });
  assert.deepEqual(answers(questions.slice(0, 1), { 0: { chosen: ["A"], other: " own " } }), { "Which?": "own" });
});

test("requests are equal only in all that is decided on", () => {
  const one = approval({ command: "ls", input: "{}", tool: "Bash" });
  assert.ok(sameRequest(one, { ...one, id: "B" }));
  for (const change of [{ command: "ls -a" }, { cwd: "/q" }, { tool: "Sh" }, { input: "{ }" }, { provider: "codex" as const }])
    assert.ok(!sameRequest(one, { ...one, ...change }));
});

test("matches of a search are marked by bytes", () => {
  assert.deepEqual(
    pieces({
      text: "größe der Datei",
      highlights: [
        [0, 7],
        [12, 17],
      ],
    }),
    [
      { text: "größe", marked: true },
      { text: " der ", marked: false },
      { text: "Datei", marked: true },
    ],
  );
  assert.equal(
    pieces({ text: "abc", highlights: [[2, 99]] })
      .map(({ text }) => text)
      .join(""),
    "abc",
  );
});

test("what set colours in a terminal is left out of a snippet", () => {
  const texts = (text: string, highlights: [number, number][] = []): string[] => pieces({ text, highlights }).map(({ text }) => text);
  assert.deepEqual(texts("\x1b[31mFAIL\x1b[0m now"), ["FAIL now"]);
  assert.deepEqual(texts("[31mFAIL [0m a.ts", [[4, 8]]), ["FAIL", "  a.ts"]);
  for (const kept of ["a[m] = b[0]", "it took [5m]", "[31 m", "[0]m"]) assert.deepEqual(texts(kept), [kept]);
});

test("all words of a search have to be there", () => {
  assert.equal(score("log parse", "Parser of logs") > 0, true);
  assert.equal(score("log missing", "Parser of logs"), 0);
});

test("a screen is patched by rows; the others stay the same", () => {
  const first = patched(null, {
    type: "grid",
    rev: 1,
    cols: 4,
    rows: 2,
    cursor: { row: 0, col: 1, visible: true },
    title: "t",
    lines: { 0: [["ab"]], 1: [["cd", 1, "#ff0000", 5]] },
  });
  assert.deepEqual(first.lines[1], [{ text: "cd", fg: 1, bg: "#ff0000", flags: 5 }]);
  const second = patched(first, { type: "grid", rev: 2, cols: 4, rows: 2, cursor: null, lines: { 0: [["xy"]] } });
  assert.equal(second.lines[1], first.lines[1]);
  assert.equal(second.cursor, null);
  assert.equal(second.title, "t");
});

test("keys that make no text are sent by name, and the browser keeps its own", () => {
  const key = (key: string, more: Partial<KeyboardEvent> = {}) => keyOf({ key, ctrlKey: false, altKey: false, metaKey: false, shiftKey: false, ...more });
  assert.equal(key("Enter"), "enter");
  assert.equal(key("Tab", { shiftKey: true }), "shift-tab");
  assert.equal(key("c", { ctrlKey: true }), "ctrl-c");
  assert.equal(key("C", { ctrlKey: true, shiftKey: true }), null);
  assert.equal(key("v", { ctrlKey: true }), null);
  assert.equal(key("a"), null);
  assert.equal(key("c", { metaKey: true }), null);
  assert.equal(key("F5"), "f5");
});

test("a strip joins what is narrower than a pixel, and keeps what a person should see", () => {
  const segments: Segment[] = Array.from({ length: 10_000 }, (_, index) => ({
    state: index === 5_000 ? "waiting_approval" : index % 2 === 0 ? "running" : "waiting",
    from: index * 10,
    until: (index + 1) * 10,
    confidence: "high",
  }));
  const shown = visibleSegments(segments, 0, 100_000, 500);
  assert.ok(shown.length <= 1_000);
  assert.ok(shown.some(({ state }) => state === "waiting_approval"));
  assert.equal(shown[0]?.from, 0);
  assert.equal(shown.at(-1)?.until, 100_000);
});

test("scales are round", () => {
  assert.deepEqual([0, 1, 7, 11, 24, 99, 1234].map(roundUp), [1, 1, 10, 20, 25, 100, 2000]);
  // Half values are round too: counts have no fractions, and times are clock times.
  assert.deepEqual(
    [0, 1, 2, 3, 7, 13, 101].map((value) => scale(value, "count")),
    [2, 2, 2, 4, 10, 20, 200],
  );
  assert.deepEqual(
    [50, 100, 3_000, 7_300, 30_000, 100_000, 400_000].map((value) => scale(value, "seconds") / 2),
    [30, 60, 1_800, 7_200, 21_600, 86_400, 259_200],
  );
});

test("keys of a subscription are bytes, and browsers have names", () => {
  assert.deepEqual([...bytes("-_8A")], [251, 255, 0]);
  assert.equal(
    deviceName("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605 Version/19.0 Mobile/15E148 Safari/604.1"),
    "Safari on iPhone",
  );
  assert.equal(deviceName("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"), "Chrome on Linux");
  assert.equal(deviceName("?"), "Browser on this device");
});

test("lines that scrolled off are joined without gaps or doubles", () => {
  const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, index): [string][] => [[`line ${from + index}`]]);
  const message = (from: number, to: number) => ({ from, oldest: 0, lines: lines(from, to) });
  const text = (of: ReturnType<typeof joined>) => of.lines.map((row) => row.map((run) => run.text).join("")).join();
  const wanted = (from: number, to: number) => lines(from, to).join();
  const next = random(6);
  for (let round = 0; round < 400; round += 1) {
    let known: ReturnType<typeof joined> | null = null;
    for (let step = 0; step < 6; step += 1) {
      const from = next(40);
      known = joined(known, message(from, from + 1 + next(20)));
      assert.equal(known.to - known.from, known.lines.length);
      assert.equal(text(known), wanted(known.from, known.to));
    }
  }
});

test("a session without a title is called by its prompt, else by its agent and directory", () => {
  const session = { provider: "codex" as const, title: null, cwd: "/home/me/projects/api" };
  assert.equal(titleOf({ ...session, title: "Fix it", summary: { last_prompt: "Now the tests" } }), "Fix it");
  assert.equal(titleOf({ ...session, title: " ", summary: { last_prompt: "Now the tests" } }), "Now the tests");
  assert.equal(titleOf({ ...session, summary: { last_prompt: null } }), "Codex in projects/api");
  assert.equal(titleOf({ ...session, cwd: "/srv/" }), "Codex in srv");
  assert.equal(titleOf({ ...session, cwd: "C:\\work\\api" }), "Codex in work/api");
  assert.equal(titleOf({ ...session, cwd: "/" }), "Codex");
  assert.equal(titleOf({ ...session, cwd: null }), "Codex");
});

test("the states of sub-agents are counted", () => {
  assert.equal(rolledUp(["running", "exited", "running", "approval"]), "2 working · 1 exited · 1 needs approval");
  assert.equal(rolledUp([]), "");
});

test("a moment says as much of its date as is needed", () => {
  const now = new Date(2026, 10, 24, 9, 30).getTime();
  const of = (year: number, month: number, day: number): string => moment(new Date(year, month, day, 7, 5).getTime(), now);
  assert.equal(of(2026, 10, 24), clock(new Date(2026, 10, 24, 7, 5).getTime()));
  assert.match(of(2026, 10, 23), /23/);
  assert.doesNotMatch(of(2026, 10, 23), /2026/);
  assert.match(of(2025, 10, 24), /2025/);
});

test("a character of any colours can be read in both themes", () => {
  const next = random(11);
  const colour = (): number | string | null => [null, next(16), next(256), `#${next(0x1000000).toString(16).padStart(6, "0")}`][next(4)] ?? null;
  for (let round = 0; round < 20_000; round += 1) {
    const style = { fg: colour(), bg: colour(), flags: next(32) };
    for (const palette of [PALETTES.dark, PALETTES.light]) {
      const { front, back } = shades(style, palette);
      const found = contrast(front, back ?? palette.ground);
      assert.ok(found >= 4.5, `${JSON.stringify(style)}: ${found}`);
    }
  }
});

test("colours that can be read, and drawings, keep their colours", () => {
  assert.equal(contrast([255, 255, 255], [0, 0, 0]), 21);
  assert.match(colours({ fg: "#00ff00", bg: "#000000", flags: 0 }, "ok")?.color ?? "", /rgb\(0 255 0\)\)$/);
  assert.match(colours({ fg: "#101010", bg: "#000000", flags: 0 }, "\u2588\u2591 \u2580")?.color ?? "", /rgb\(16 16 16\)\)$/);
  assert.doesNotMatch(colours({ fg: "#101010", bg: "#000000", flags: 0 }, "x")?.color ?? "", /rgb\(16 16 16\)/);
  assert.equal(colours({ fg: null, bg: null, flags: 1 }, "bold"), null);
});

test("wide characters take two cells, marks none, and only what the font draws otherwise is held", () => {
  assert.deepEqual([..."a\u00e9\u65e5\uac00\u{1f680}\u{1f600}\u2705\uff21\u2500\u276f\u0301\u200d"].map(cells), [1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 0, 0]);
  const fits = (character: string, count: number): boolean => count === 1 && character !== "\u276f";
  assert.deepEqual(held("plain", fits), [{ text: "plain", cells: null }]);
  assert.deepEqual(held("|\u65e5\u672c|\u2500\u276f e\u0301", fits), [
    { text: "|", cells: null },
    { text: "\u65e5", cells: 2 },
    { text: "\u672c", cells: 2 },
    { text: "|\u2500", cells: null },
    { text: "\u276f", cells: 1 },
    { text: " e\u0301", cells: null },
  ]);
});

test("a terminal rests where its cursor is in view, below as much as fits", () => {
  const at = (cursor: number | null, more = {}): number => restingPlace({ height: 1_000, window: 400, line: 20, cursor, filled: 980, ...more });
  assert.equal(at(900), 600, "at the end");
  assert.equal(at(300), 280, "the cursor is high up on a tall screen");
  assert.equal(at(0), 0);
  assert.equal(at(null), 600);
  assert.equal(at(null, { filled: 100 }), 0, "a hidden cursor: what is written");
  assert.equal(at(50, { height: 300 }), 0, "all of it fits");
});

test("whole texts are kept, and the one that was used longest ago goes first", () => {
  const text = (of: string): string => of.repeat(3_000_000);
  keep("a", text("a"));
  keep("b", text("b"));
  assert.equal(known("a"), text("a"));
  keep("c", text("c"));
  assert.deepEqual([known("a")?.[0], known("b"), known("c")?.[0]], ["a", null, "c"]);
  keep("c", text("c"));
  assert.equal(known("a")?.[0], "a", "the same text counts once");
});

test("what an agent says now begins at a word, and loses its beginning at a line", () => {
  assert.deepEqual(heard(silent(true), "Begun"), { text: "Begun", cut: false });
  assert.deepEqual(heard(silent(false), "ning of a word"), { text: "of a word", cut: true });
  let saying = silent(true);
  for (let line = 0; line < 400; line += 1) saying = heard(saying, `line ${line} of what is said\n`);
  assert.ok(saying.cut && saying.text.length <= 8_000);
  assert.match(saying.text, /^line \d+ of what is said\n/);
  assert.match(saying.text, /line 399 of what is said\n$/);
  saying = heard(silent(true), "Code:\n```sh\n");
  for (let line = 0; line < 400; line += 1) saying = heard(saying, `echo ${line} and more of it\n`);
  assert.match(saying.text, /^```\necho \d+/, "the rest of a fence is still code");
});

test("marks are taken back as they were", () => {
  const before = { pinned: false, snoozed_until: "2026-11-23T18:00:00Z", archived: false };
  assert.deepEqual(reversed({ archived: true }, before), { archived: false });
  assert.deepEqual(reversed({ snoozed_until: null }, before), { snoozed_until: "2026-11-23T18:00:00Z" });
  assert.deepEqual(reversed({ pinned: true, snoozed_until: "2026-12-01T00:00:00Z" }, null), { pinned: false, snoozed_until: null });
});

test("a call waits for the request that names it, or asks for the same", () => {
  const call = {
    type: "tool_call",
    sequence: 1,
    at: "",
    call_id: "c1",
    name: "Bash",
    tool: "execute",
    title: "make",
    input: { text: "" },
  } as unknown as Parameters<typeof requestOf>[0];
  const asked = (fields: Partial<OpenApproval>): OpenApproval =>
    ({ id: "a", call_id: null, tool: "Bash", command: "make", subject: "make", ...fields }) as OpenApproval;
  assert.equal(requestOf(call, [asked({ call_id: "c2" }), asked({ call_id: "c1", id: "b" })])?.id, "b");
  assert.equal(requestOf(call, [asked({})])?.id, "a");
  assert.equal(requestOf(call, [asked({ call_id: "c2" })]), undefined);
  assert.equal(requestOf(call, [asked({ command: "make all", subject: "make all" })]), undefined);
  assert.equal(requestOf({ ...call, result: { outcome: "ok", text: "" } } as typeof call, [asked({ call_id: "c1" })]), undefined);
});
