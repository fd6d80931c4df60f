// Measures the page: time from a frame to the picture, the first picture with 2,000 sessions, tasks while scrolling a
// conversation of 100,000 events, memory, and what an open page costs the server. Prints figures; judges nothing.
//
//   CAPTURE_BINARY=… node e2e/bench.mjs [frames] [first] [scroll]

import { appendFileSync, readFileSync } from "node:fs";
import { Visitor, launch } from "./browser.mjs";
import { World, eventually } from "./world.mjs";

const wanted = process.argv.slice(2);
const asked = (name) => wanted.length === 0 || wanted.includes(name);
const id = (number) => `5a6b7c8d-0000-4000-8000-${String(number).padStart(12, "0")}`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
const round = (value) => Math.round(value * 10) / 10;

/** Processor time of a process so far, seconds. */
function processor(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function inParallel(count, width, work) {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) await work(next++);
    }),
  );
}

const browser = await launch();
const world = new World();
try {
  await world.serve();
  if (asked("frames")) await frames();
  if (asked("scroll")) await scroll();
  if (asked("first")) await first();
} finally {
  await browser.close();
  await world.close();
}

/** 50 sessions that work: from the arrival of a frame to the picture, and what the page costs. */
async function frames() {
  const agents = Array.from({ length: 50 }, (_, number) => world.agent("claude", id(number + 1), `busy-${number}`));
  await inParallel(agents.length, 4, async (number) => {
    agents[number].transcribe([{ prompt: `Work ${number}` }]);
    await agents[number].begin(`Work ${number}`);
  });
  await eventually("all are known", async () => (await world.api("/api/v1/sessions?limit=100")).sessions.length >= 50);
  let round_ = 0;
  const busy = setInterval(() => {
    for (let step = 0; step < 10; step += 1) {
      const agent = agents[(round_ * 10 + step) % 50];
      const turn = Math.floor(round_ / 5);
      const base = { sessionId: agent.session, cwd: agent.cwd, version: "2.1.328", isSidechain: false, timestamp: new Date().toISOString(), uuid: `${String(10_000 + round_ * 10 + step)}${agent.session.slice(8)}` };
      const call = `toolu_${agent.session.slice(-12)}${turn - (turn % 2)}`;
      const line =
        turn % 2 === 0
          ? { ...base, type: "assistant", message: { id: `m${round_}${step}`, type: "message", role: "assistant", model: "claude-opus-5-5", content: [{ type: "tool_use", id: call, name: "Bash", input: { command: `step ${turn}` } }], stop_reason: "tool_use", usage: { input_tokens: 1, output_tokens: 1 } } }
          : { ...base, type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: call, content: "ok" }] } };
      appendFileSync(agent.transcript, `${JSON.stringify(line)}\n`);
    }
    round_ += 1;
  }, 100);
  const rest = async (seconds) => {
    const before = processor(world.server.pid);
    await sleep(seconds * 1000);
    return (processor(world.server.pid) - before) / seconds;
  };
  await sleep(3_000);
  const without = await rest(15);
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await page.locator("a.session-link").nth(10).waitFor();
  await page.evaluate(() => {
    globalThis.paints = [];
    new PerformanceObserver((list) => globalThis.paints.push(...list.getEntriesByName("frame to paint").map((entry) => entry.duration))).observe({ type: "measure" });
    globalThis.long = [];
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  });
  const withPage = await rest(20);
  const paints = (await page.evaluate(() => globalThis.paints)).sort((left, right) => left - right);
  const long = await page.evaluate(() => globalThis.long);
  const session = await visitor.context.newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  clearInterval(busy);
  console.log(`frame to paint, 50 busy sessions: n ${paints.length}, p50 ${round(at(paints, 0.5))} ms, p90 ${round(at(paints, 0.9))} ms, p99 ${round(at(paints, 0.99))} ms, most ${round(paints.at(-1))} ms; tasks over 50 ms: ${long.length}`);
  console.log(`heap of the page: ${round(usedSize / 1e6)} MB; server: ${round(without * 100)} % of a core without the page, ${round(withPage * 100)} % with it`);
  await visitor.close();
}

/** A conversation of 100,000 events, scrolled from end to end. */
async function scroll() {
  const agent = world.agent("claude", id(9_000), "long");
  const entries = [];
  for (let number = 0; number < 14_500; number += 1) entries.push({ prompt: `prompt ${number}` }, { answer: `answer ${number}\n\n${"- a point of `code` and **words**\n".repeat(number % 8)}` });
  agent.transcribe(entries);
  await agent.begin("the last");
  const { id: session } = await agent.known();
  const { last_sequence } = await eventually("all of it is read", async () => {
    const found = await world.api(`/api/v1/sessions/${session}`);
    return found.turns >= 14_500 ? found : undefined;
  }, 180_000);
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open(`/s/${session}`);
  await page.locator(".conversation").getByText("prompt 14499").waitFor();
  await page.evaluate(() => {
    globalThis.long = [];
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask" });
  });
  const pane = page.locator(".conversation");
  await pane.hover();
  // As a hand does: steady, then flung, then dragged by the bar.
  for (let step = 0; step < 150; step += 1) {
    await page.mouse.wheel(0, -400);
    await sleep(16);
  }
  for (let step = 0; step < 60; step += 1) {
    await page.mouse.wheel(0, -12_000);
    await sleep(30);
  }
  for (let step = 0; step <= 40; step += 1) {
    await pane.evaluate((element, part) => element.scrollTo(0, element.scrollHeight * part), step / 40);
    await sleep(120);
  }
  await sleep(1_000);
  const long = await page.evaluate(() => globalThis.long);
  const elements = await page.locator("*").count();
  const client = await visitor.context.newCDPSession(page);
  await client.send("HeapProfiler.collectGarbage");
  const { usedSize } = await client.send("Runtime.getHeapUsage");
  console.log(`scrolling ${last_sequence} events: tasks over 50 ms: ${long.length}${long.length > 0 ? ` (${long.sort((a, b) => b - a).slice(0, 8).join(", ")} ms)` : ""}; elements ${elements}; heap ${round(usedSize / 1e6)} MB`);
  await visitor.close();
}

/** The first picture with 2,000 sessions, cold, on a processor four times slower. */
async function first() {
  const known = (await world.api("/api/v1/sessions?limit=1000")).sessions.length;
  await inParallel(2_000 - known, 4, async (number) => {
    const agent = world.agent("claude", id(20_000 + number), `many-${number % 40}`);
    await agent.hook("SessionStart", { source: "startup" });
    await agent.hook("UserPromptSubmit", { prompt: `Task ${number}` });
  });
  const count = async () => {
    let sum = 0;
    for (let cursor = ""; cursor !== null; ) {
      const page = await world.api(`/api/v1/sessions?limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`);
      sum += page.sessions.length;
      cursor = page.next_cursor;
    }
    return sum;
  };
  const sessions = await eventually("all are known", async () => {
    const found = await count();
    return found >= 1_990 ? found : undefined;
  }, 120_000);
  const visitor = await Visitor.paired(browser, world);
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    const page = await visitor.context.newPage();
    const client = await visitor.context.newCDPSession(page);
    await client.send("Network.setCacheDisabled", { cacheDisabled: true });
    await client.send("Emulation.setCPUThrottlingRate", { rate: 4 });
    await page.addInitScript(() => {
      const watch = () => {
        if (document.querySelector("a.session-link") !== null) requestAnimationFrame(() => setTimeout(() => (globalThis.listed = performance.now())));
        else requestAnimationFrame(watch);
      };
      requestAnimationFrame(watch);
    });
    await page.goto(world.url);
    await page.waitForFunction(() => globalThis.listed !== undefined, undefined, { timeout: 60_000 });
    times.push(await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, globalThis.listed]));
    await page.close();
  }
  const middle = (index) => round(times.map((time) => time[index]).sort((left, right) => left - right)[2]);
  console.log(`${sessions} sessions, cold, processor 4 times slower, median of 5: first contentful paint ${middle(0)} ms, the list ${middle(1)} ms`);
  await visitor.close();
}
