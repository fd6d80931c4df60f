import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Finding, FindingKind, MarkedSession, Reason, State } from "../src/api/routes";
import { FrameReader, LineReader } from "../src/live/frames";
import { Lag } from "../src/live/lag";
import { needOf } from "../src/live/need";
import { put, row } from "../src/live/store";
import { groups, matches } from "../src/views/groups";
import { random } from "./random";

/** Asserts that a reader's results do not depend on how the text is split into pieces. */
function readsAnyPieces<T>(begin: () => { read: (piece: string) => T[] }, text: string, whole: T[]): void {
  const next = random(4);
  for (let round = 0; round < 300; round += 1) {
    const reader = begin();
    const found = [];
    for (let at = 0; at < text.length; ) {
      const size = 1 + next(9);
      found.push(...reader.read(text.slice(at, at + size)));
      at += size;
    }
    assert.deepEqual(found, whole);
  }
}

test("a stream is taken apart the same, however it is cut", () => {
  const text = 'event: snapshot\nid: 7\ndata: {"a":1}\n\n: still here\n\nevent: status\ndata: {"b":"ü"}\n\nevent: event\nid: 8\ndata: x\ndata: y\n\n';
  const whole = new FrameReader().read(text);
  assert.deepEqual(whole, [
    { name: "snapshot", id: "7", data: '{"a":1}' },
    { name: "keepalive", id: null, data: "" },
    { name: "status", id: null, data: '{"b":"ü"}' },
    { name: "event", id: "8", data: "x\ny" },
  ]);
  readsAnyPieces(() => new FrameReader(), text, whole);
});

test("lines are taken apart the same, however they are cut", () => {
  const text = '{"type":"status","position":7,"data":{"b":"ü"}}\n{"type":"sent","at":"2026-11-23T09:00:00Z","position":7}\n';
  const whole = new LineReader().read(text);
  assert.deepEqual(whole, [
    { type: "status", position: 7, data: { b: "ü" } },
    { type: "sent", at: "2026-11-23T09:00:00Z", position: 7 },
  ]);
  readsAnyPieces(() => new LineReader(), text, whole);
});

test("the page knows how old what it shows is, whatever its clock says", () => {
  for (const apart of [0, -3_600_000, 86_400_000]) {
    const lag = new Lag();
    assert.equal(lag.behind(0), 0, "nothing was shown");
    lag.heard(apart + 1_000, 1_200);
    lag.heard(apart + 2_000, 2_150);
    assert.equal(lag.behind(2_200), 0, "the fastest piece");
    lag.heard(apart + 3_000, 9_150);
    assert.equal(lag.behind(9_200), 6_000, "sent 6 s earlier than a fast piece would have been");
    lag.heard(apart + 9_000, 9_250);
    assert.equal(lag.behind(9_300), 100);
    assert.equal(lag.behind(13_250), 100, "the server may be silent for 5 s");
    assert.equal(lag.behind(17_250), 8_100, "silence counts from when it was last heard");
  }
});

const MARKS = { pinned: false, snoozed_until: null, archived: false };
let made = 0;
function session(state: State, reason: Reason | null, more: Partial<MarkedSession> = {}): MarkedSession {
  made += 1;
  const at = new Date(Date.UTC(2026, 10, 23, 10, 0, made)).toISOString();
  return {
    id: `S${String(made).padStart(4, "0")}`,
    provider: "claude",
    title: `session ${made}`,
    cwd: "/home/me/project",
    started_at: at,
    last_event_at: at,
    last_sequence: 1,
    parent_session_id: null,
    status: { state, reason, since: at, confidence: "high", activity: null, evidence: [], disagreements: [] },
    summary: { current: null, recent: null, last_prompt: null },
    ...more,
  } as unknown as MarkedSession;
}

function finding(kind: FindingKind, of: string, first_at = "2026-11-23T09:00:00Z", state: Finding["state"] = "open"): Finding {
  return {
    id: `${of} ${kind}`,
    kind,
    session_id: of,
    state,
    first_at,
    what: "what",
    why: "why",
    severity: "warning",
    count: 1,
    key: kind,
    last_at: first_at,
  } as Finding;
}

/** A combination of a session, a sub-agent and findings, with what the server says that the session needs. */
type NeedCase = {
  own: Partial<MarkedSession["status"]>;
  below: Partial<MarkedSession["status"]> | null;
  findings: { kind: FindingKind; below: boolean; state: Finding["state"]; first_at: string; what: string; why: string }[];
  need: ReturnType<typeof needOf>;
};

test("a session needs what the server says it needs", () => {
  const cases = readFileSync("test/needs.jsonl", "utf8").trim().split("\n");
  assert.ok(cases.length > 100);
  for (const line of cases) {
    const { own, below, findings, need } = JSON.parse(line) as NeedCase;
    const watched = (status: NeedCase["own"], isBelow: boolean) => {
      const of = session("running", null);
      const own = findings.filter((one) => one.below === isBelow);
      return {
        session: { ...of, status: { ...of.status, ...status } },
        findings: own.map((one) => ({ ...finding(one.kind, of.id, one.first_at, one.state), what: one.what, why: one.why })),
      };
    };
    assert.deepEqual(needOf(watched(own, false), below === null ? [] : [watched(below, true)]), need, line);
  }
});

const titles = (rows: ReturnType<typeof groups>): string[] => rows.map(({ key, rows }) => `${key}: ${rows.map((row) => row.session.peek().title).join(", ")}`);

test("sessions are grouped by need, and activity alone moves nothing", () => {
  const rows = [
    put(session("running", "tool", { title: "old work" })),
    put(session("running", "tool", { title: "new work" })),
    put(session("waiting_approval", "tool", { title: "first ask" })),
    put(session("waiting_approval", "tool", { title: "second ask" })),
    put(session("waiting", "turn_complete", { title: "done" })),
    put(session("idle", "quiet", { title: "quiet" })),
    put(session("idle", "quiet", { title: "pinned", marks: { ...MARKS, pinned: true } })),
    put(session("running", "tool", { title: "archived", marks: { ...MARKS, archived: true } })),
    put(session("waiting", "question", { title: "later", marks: { ...MARKS, snoozed_until: "2126-01-01T00:00:00Z" } })),
    put(session("exited", "clean", { title: "over" })),
  ];
  const wanted = ["needs: first ask, second ask, done", "working: new work, old work", "quiet: pinned, quiet", "snoozed: later", "ended: over"];
  assert.deepEqual(titles(groups(rows, "active", "need")), wanted);
  const work = rows[0]?.session;
  assert.ok(work !== undefined);
  const { status } = work.value;
  put({ ...work.value, last_sequence: 9, last_event_at: "2026-11-23T23:00:00Z", status: { ...status, activity: "cargo test" } });
  assert.equal(row(work.value.id)?.session.value.status.activity, "cargo test");
  assert.deepEqual(titles(groups(rows, "active", "need")), wanted);
  assert.deepEqual(titles(groups(rows, "archived", "need")), ["archived: archived"]);
  assert.deepEqual(titles(groups(rows, "active", "project"))[0]?.split(": ")[0], "project /home/me/project");
});

test("a sub-agent is listed with its parent, and alone where the parent is not known", () => {
  const parent = put(session("running", "subagents", { title: "parent" }));
  const child = put(session("waiting_approval", "tool", { title: "child", parent_session_id: parent.id }));
  const orphan = put(session("waiting_approval", "tool", { title: "orphan", parent_session_id: "S9999" }));
  assert.deepEqual(titles(groups([parent, child, orphan], "active", "need")), ["needs: parent, orphan"]);
});

test("what is older than what is known changes nothing", () => {
  const fresh = put(session("running", "tool", { last_sequence: 50 }));
  put({ ...fresh.session.value, last_sequence: 49, title: "stale" });
  assert.notEqual(fresh.session.value.title, "stale");
});

test("a filter looks at everything that a row shows", () => {
  const of = put(session("running", "tool", { title: "Parser of logs", cwd: "/home/me/logtool", git_branch: "feature/x", labels: { team: "core" } }));
  for (const filter of ["parser", "LOGTOOL parser", "feature", "team=core", "claude"]) assert.ok(matches(of, filter, ""), filter);
  assert.ok(!matches(of, "parser missing", ""));
  assert.ok(!matches(of, "", "codex"));
});
