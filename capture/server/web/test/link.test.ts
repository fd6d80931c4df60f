import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { Link } from "../src/terminal/link";

/** A WebSocket whose other end is controlled by the test. */
class Socket {
  static readonly OPEN = 1;
  static made: Socket[] = [];
  readyState = 0;
  sent: string[] = [];
  isClosed = false;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: (() => void) | null = null;

  constructor() {
    Socket.made.push(this);
  }

  send(text: string): void {
    this.sent.push(text);
  }

  // A dead connection takes long to close.
  close(): void {
    this.isClosed = true;
  }

  says(message: object): void {
    this.readyState = Socket.OPEN;
    this.onmessage?.({ data: JSON.stringify(message) });
  }

  breaks(): void {
    this.readyState = 3;
    this.onclose?.();
  }
}

const SCREEN = { type: "grid", rev: 1, cols: 80, rows: 24, cursor: null, lines: {} };
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

beforeEach(() => {
  Socket.made = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  Object.assign(globalThis, { WebSocket: Socket, location: { protocol: "http:", host: "127.0.0.1:1" }, fetch: () => Promise.reject(new TypeError("away")) });
});

function opened(): { link: Link; socket: Socket } {
  const link = new Link("R");
  link.open();
  const socket = Socket.made[0] as Socket;
  socket.says(SCREEN);
  assert.equal(link.mode.value, "live");
  return { link, socket };
}

test("a message without an answer ends a connection, says so, and another one is made", async () => {
  const { link, socket } = opened();
  const sent = link.send({ type: "input", text: "x" });
  const failed = assert.rejects(sent, /whether the input arrived is not known/);
  mock.timers.tick(4_999);
  assert.equal(link.mode.value, "live");
  mock.timers.tick(1);
  await failed;
  assert.equal(link.mode.value, "away");
  assert.ok(socket.isClosed);
  mock.timers.tick(300);
  assert.equal(Socket.made.length, 2);
  // Late messages of the old socket are ignored.
  socket.says(SCREEN);
  assert.equal(link.mode.value, "away");
  socket.breaks();
  assert.equal(Socket.made.length, 2);
  Socket.made[1]?.says(SCREEN);
  assert.equal(link.mode.value, "live");
});

test("a message that is answered ends nothing", async () => {
  const { link, socket } = opened();
  const sent = link.send({ type: "input", text: "x" });
  socket.says({ type: "done" });
  await sent;
  await settled();
  mock.timers.tick(60_000);
  assert.equal(link.mode.value, "live");
  assert.equal(Socket.made.length, 1);
});

test("the age of the last screen counts from when it was live, however often a try fails", async () => {
  const { link } = opened();
  mock.timers.tick(5_000);
  link.drop();
  const since = link.away.value;
  assert.equal(since, 1_005_000);
  for (let round = 0; round < 8; round += 1) {
    mock.timers.tick(5_000);
    await settled();
    Socket.made.at(-1)?.breaks();
    link.now();
    Socket.made.at(-1)?.breaks();
    assert.equal(link.away.value, since);
    assert.equal(link.mode.value, "away");
  }
});

test("a connection that brings no screen is given up", () => {
  const { link } = opened();
  link.drop();
  mock.timers.tick(300);
  const hanging = Socket.made[1] as Socket;
  hanging.readyState = Socket.OPEN;
  mock.timers.tick(9_999);
  assert.ok(!hanging.isClosed);
  mock.timers.tick(1);
  assert.ok(hanging.isClosed);
  assert.equal(link.mode.value, "away");
  link.now();
  Socket.made[2]?.says(SCREEN);
  mock.timers.tick(60_000);
  assert.equal(link.mode.value, "live");
});

test("a try that hangs is given up when the server is back", () => {
  const { link } = opened();
  link.drop();
  mock.timers.tick(300);
  const hanging = Socket.made[1] as Socket;
  link.now();
  assert.ok(hanging.isClosed);
  assert.equal(Socket.made.length, 3);
  Socket.made[2]?.says(SCREEN);
  hanging.breaks();
  assert.equal(link.mode.value, "live");
  link.close();
});
