import assert from "node:assert/strict";
import { test } from "node:test";
import type { Recording, RecordingFrame, RecordingFrames } from "../src/api/routes";
import { changeAfter, frameAt, Player, screens } from "../src/terminal/recording";
import { position } from "../src/text/format";
import { random } from "./random";

const frame = (at_ms: number, lines: Record<string, string>): RecordingFrame => ({
  at_ms,
  cols: 20,
  rows: 2,
  cursor: null,
  lines: Object.fromEntries(Object.entries(lines).map(([row, text]) => [row, [[text]]])),
});
const recording = (duration_ms: number, ended = true): Recording => ({ started_at: "2026-11-23T10:00:00Z", duration_ms, ended, dropped_ms: 0 });

/** A server with a screen that shows its number at each of these times, in pages of `size` frames. */
function server(times: number[], size: number) {
  const asked: number[] = [];
  const read = (from: number): Promise<RecordingFrames> => {
    asked.push(from);
    const before = times.findLastIndex((time) => time <= from);
    const more = times.filter((time) => time > from);
    const page = more.slice(0, size - 1);
    const frames = [frame(from, { 0: `change ${before}`, 1: "same" }), ...page.map((time) => frame(time, { 0: `change ${times.indexOf(time)}` }))];
    return Promise.resolve({ frames, next_ms: more.length > page.length ? (more[page.length] ?? 0) : null });
  };
  return { read, asked };
}
const shown = (player: Player): string => player.grid.value?.lines.map((row) => row.map((run) => run.text).join("")).join("|") ?? "";
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test("the screen of a time is the last one before it", () => {
  const frames = screens({ frames: [frame(0, { 0: "a", 1: "b" }), frame(10, { 0: "c" }), frame(30, { 1: "d" })], next_ms: null });
  assert.equal(frames[1]?.grid.lines[1], frames[0]?.grid.lines[1]);
  assert.deepEqual(
    [-1, 0, 9, 10, 29, 30, 99].map((time) => frameAt(frames, time)?.at),
    [undefined, 0, 0, 10, 10, 30, 30],
  );
  assert.deepEqual(
    [-1, 0, 10, 30].map((time) => changeAfter(frames, time)),
    [0, 10, 30, null],
  );
});

test("every time shows its screen, wherever it is jumped to from", async () => {
  const next = random(9);
  for (let round = 0; round < 30; round += 1) {
    const times = [...new Set(Array.from({ length: 2 + next(40) }, () => next(20_000)))].sort((left, right) => left - right);
    const duration = (times.at(-1) ?? 0) + 500;
    const { read } = server(times, 2 + next(8));
    const player = new Player(() => Promise.resolve(recording(duration)), read);
    await player.open();
    for (let step = 0; step < 20; step += 1) {
      const to = next(duration);
      await player.seek(to);
      assert.equal(shown(player), `change ${times.findLastIndex((time) => time <= to)}|same`);
    }
  }
});

test("playing shows every change in order, reads ahead, and ends", async () => {
  const times = Array.from({ length: 50 }, (_, index) => index * 100);
  const { read, asked } = server(times, 10);
  const player = new Player(() => Promise.resolve(recording(5_000)), read);
  await player.open();
  await player.play();
  const seen: string[] = [];
  for (let step = 0; step < 1_000 && player.playing.value; step += 1) {
    player.tick(50);
    await settled();
    if (shown(player) !== seen.at(-1)) seen.push(shown(player));
  }
  assert.deepEqual(
    seen,
    times.map((_, index) => `change ${index}|same`),
  );
  assert.equal(player.position.value, 5_000);
  assert.equal(new Set(asked).size, asked.length, "nothing is read twice");
  await player.play();
  assert.equal(player.position.value, 0);
});

test("pauses are skipped, or kept where they are wanted", async () => {
  const ticks = async (skips: boolean): Promise<number> => {
    const player = new Player(() => Promise.resolve(recording(60_000)), server([0, 59_000], 10).read);
    player.skips.value = skips;
    await player.open();
    await player.play();
    let count = 0;
    for (; player.playing.value && count < 10_000; count += 1) player.tick(100);
    return count;
  };
  assert.ok((await ticks(true)) <= 25);
  assert.equal(await ticks(false), 600);
});

test("a server that cannot be reached stops the playing, and it goes on from there", async () => {
  const { read } = server([0, 1_000, 2_000, 3_000], 2);
  let broken = false;
  const player = new Player(
    () => Promise.resolve(recording(4_000)),
    (from) => (broken ? Promise.reject(new Error("gone")) : read(from)),
  );
  await player.open();
  broken = true;
  await player.play();
  player.tick(100);
  await settled();
  assert.equal(player.playing.value, false);
  assert.ok(player.failed.value instanceof Error);
  broken = false;
  await player.seek(2_500);
  assert.equal(player.failed.value, null);
  assert.equal(shown(player), "change 2|same");
});

test("what is still recorded can be played on", async () => {
  let long = 1_000;
  const times = [0, 500];
  const player = new Player(
    () => Promise.resolve(recording(long, false)),
    (from) => server(times, 10).read(from),
  );
  await player.open();
  await player.seek(1_000);
  assert.equal(shown(player), "change 1|same");
  long = 3_000;
  times.push(2_000);
  await player.play();
  for (let step = 0; step < 100 && player.playing.value; step += 1) {
    player.tick(100);
    await settled();
  }
  assert.equal(shown(player), "change 2|same");
});

test("who stands at the end of what is still recorded stays there", async () => {
  let long = 0;
  const times = [0];
  const player = new Player(
    () => Promise.resolve(recording(long, false)),
    (from) => server(times, 10).read(from),
  );
  await player.open(3_600_000);
  assert.equal(player.position.value, 0);
  long = 2_500;
  times.push(2_000);
  await player.follow();
  assert.equal(player.position.value, 2_500);
  assert.equal(shown(player), "change 1|same");
  await player.seek(500);
  long = 4_000;
  await player.follow();
  assert.equal(player.position.value, 500);
});

test("places in a recording are read as on a player", () => {
  assert.deepEqual([0, 7_900, 750_000, 3_723_000].map(position), ["0:00", "0:07", "12:30", "1:02:03"]);
});
