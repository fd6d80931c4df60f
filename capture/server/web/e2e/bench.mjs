// Measures the page: time from a frame, and from a line an agent writes, to the picture; the first picture with 2,000
// sessions; long tasks while scrolling a conversation of 100,000 events; the server's cost of an open page; and, if
// requested, the memory of a tab over an hour. Prints each figure next to its limit.
//
//   CAPTURE_BINARY=… node e2e/bench.mjs [frames] [first] [scroll] [memory[=MINUTES]]

import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { launch, Visitor } from "./browser.mjs";
import { eventually, World } from "./world.mjs";

const wanted = process.argv.slice(2);
const asked = (name) => wanted.length === 0 || wanted.includes(name);
const hour = wanted.map((word) => /^memory(?:=(\d+))?$/.exec(word)).find((found) => found !== null);
const id = (number) => `5a6b7c8d-0000-4000-8000-${String(number).padStart(12, "0")}`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
const round = (value) => Math.round(value * 10) / 10;

/** CPU time of a process so far, seconds. */
function processor(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** A row of the report; `held` is `null` if there is no limit. */
function row(what, value, must = "–", held = null) {
  console.log(`| ${what} | ${value} | ${must}${held === null ? "" : held ? ": met" : ": **missed**"} | ${round(loadavg()[0])} |`);
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
  console.log("| what | value | must | load |\n|---|---|---|---|");
  if (asked("frames")) await frames();
  if (asked("scroll")) await scroll();
  if (asked("first")) await first();
  if (hour !== undefined) await memory(Number(hour[1] ?? 60));
} finally {
  await browser.close();
  await world.close();
}

/** Writes a line of a transcript; its id is derived from the number. */
function line(agent, number, message) {
  const uuid = `${String(10_000_000 + number).slice(-8)}${agent.session.slice(8)}`;
  const base = { sessionId: agent.session, cwd: agent.cwd, version: "2.1.328", isSidechain: false, timestamp: new Date().toISOString(), uuid };
  appendFileSync(agent.transcript, `${JSON.stringify({ ...base, type: message.role, message })}\n`);
}

/** The agent writes a text or a tool call. */
function answers(agent, number, content, stop_reason) {
  line(agent, number, {
    id: `m${number}`,
    type: "message",
    role: "assistant",
    model: "claude-opus-5-5",
    content: [content],
    stop_reason,
    usage: { input_tokens: 1, output_tokens: 1 },
  });
}

/** The agent starts a command, or, without one, its command ends. */
function works(agent, number, command) {
  if (command === null) return line(agent, number, { role: "user", content: [{ type: "tool_result", tool_use_id: agent.call, content: "ok" }] });
  agent.call = `toolu_${agent.session.slice(-12)}${number}`;
  answers(agent, number, { type: "tool_use", id: agent.call, name: "Bash", input: { command } }, "tool_use");
}

/** Starts 50 sessions, each of which writes two lines per second. Returns them and a function that stops them. */
async function busySessions(first = 1) {
  const agents = Array.from({ length: 50 }, (_, number) => world.agent("claude", id(number + first), `busy-${number}`));
  await inParallel(agents.length, 4, async (number) => {
    agents[number].transcribe([{ prompt: `Work ${number}` }]);
    await agents[number].begin(`Work ${number}`);
  });
  await eventually("all are known", async () => (await world.api("/api/v1/sessions?limit=100")).sessions.length >= 50);
  let round_ = 0;
  const timer = setInterval(() => {
    const turn = Math.floor(round_ / 5);
    for (let step = 0; step < 10; step += 1) works(agents[(round_ * 10 + step) % 50], round_ * 10 + step, turn % 2 === 0 ? `step ${turn}` : null);
    round_ += 1;
  }, 100);
  return { agents, stop: () => clearInterval(timer) };
}

/** 50 working sessions: the time from the arrival of a frame to the picture, and the cost of the page. */
async function frames() {
  const { agents, stop } = await busySessions();
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
    new PerformanceObserver((list) => globalThis.paints.push(...list.getEntriesByName("frame to paint").map((entry) => entry.duration))).observe({
      type: "measure",
    });
    globalThis.long = [];
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  });
  const withPage = await rest(20);
  const paints = (await page.evaluate(() => globalThis.paints)).sort((left, right) => left - right);
  const long = await page.evaluate(() => globalThis.long);
  const lines = await appended(page, agents[0]);
  stop();
  row(
    "a frame arrives, until it is painted, 50 busy sessions",
    `p50 ${round(at(paints, 0.5))} ms, p99 ${round(at(paints, 0.99))} ms of ${paints.length}`,
    "p50 50 ms, p99 150 ms",
    at(paints, 0.5) <= 50 && at(paints, 0.99) <= 150,
  );
  row("tasks over 50 ms meanwhile", long.length);
  row(
    "an agent writes an answer, until it is painted in its conversation",
    `p50 ${round(at(lines, 0.5))} ms, longest ${round(lines.at(-1))} ms of ${lines.length}`,
  );
  row(
    "processor time of the server for the open page",
    `${round((withPage - without) * 100)} % of a core (${round(without * 100)} % without the page)`,
    "0.5 %",
    withPage - without <= 0.005,
  );
  await visitor.close();
}

/** The time from an answer of one of 50 busy agents to the picture of its conversation, ms, sorted. */
async function appended(page, agent) {
  const { id: session } = await agent.known();
  await page.goto(`${world.url}/s/${session}`);
  await page.locator(".conversation").getByText("Work 0").first().waitFor();
  await page.evaluate(() => {
    globalThis.marks = {};
    new MutationObserver(() => {
      for (const [, number] of document.querySelector(".conversation").textContent.matchAll(/mark (\d+)\./g)) {
        if (number in globalThis.marks) continue;
        globalThis.marks[number] = null;
        requestAnimationFrame(() => setTimeout(() => (globalThis.marks[number] = Date.now())));
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  const times = [];
  for (let number = 0; number < 40; number += 1) {
    const written = Date.now();
    answers(agent, 5_000_000 + number, { type: "text", text: `mark ${number}.` }, "end_turn");
    const painted = await page.waitForFunction((number) => globalThis.marks[number] ?? null, number, { timeout: 10_000 });
    times.push((await painted.jsonValue()) - written);
    await sleep(130);
  }
  return times.sort((left, right) => left - right);
}

/** The memory of a tab that shows 50 busy sessions and switches views every 20 seconds. */
async function memory(minutes) {
  const { stop } = await busySessions(101);
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await page.locator("a.session-link").nth(10).waitFor();
  const samples = [];
  for (let look = 0; look < minutes * 3; look += 1) {
    await sleep(20_000);
    if (look % 4 === 3) await page.locator("a.session-link").nth(3).click();
    else await page.goto(`${world.url}${["/", "/overview", "/"][look % 4]}`);
    samples.push(tab());
  }
  stop();
  const most = (field) => round(Math.max(...samples.map((sample) => sample[field])));
  row(
    `memory of a tab over ${minutes} minutes, 50 busy sessions, largest`,
    `PSS ${most("pss")} MB, private ${most("own")} MB, RSS ${most("rss")} MB with Chromium's own files; ${round(samples.at(-1).pss)} MB PSS at the end`,
    "150 MB",
    most("pss") <= 150,
  );
  await visitor.close();
}

/** The memory of the largest tab of the browser, MB. */
function tab() {
  const sizes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) return null;
        const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
        const of = (name) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? 0) / 1024;
        return { rss: of("Rss"), pss: of("Pss"), own: of("Private_Clean") + of("Private_Dirty") };
      } catch {
        // The process has exited.
        return null;
      }
    });
  return sizes.filter((size) => size !== null).sort((left, right) => right.own - left.own)[0];
}

/** A conversation of 100,000 events, scrolled from end to end. */
async function scroll() {
  const agent = world.agent("claude", id(9_000), "long");
  const entries = [];
  for (let number = 0; number < 14_500; number += 1)
    entries.push({ prompt: `prompt ${number}` }, { answer: `answer ${number}\n\n${"- a point of `code` and **words**\n".repeat(number % 8)}` });
  agent.transcribe(entries);
  await agent.begin("the last");
  const { id: session } = await agent.known();
  const { last_sequence } = await eventually(
    "all of it is read",
    async () => {
      const found = await world.api(`/api/v1/sessions/${session}`);
      return found.turns >= 14_500 ? found : undefined;
    },
    180_000,
  );
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open(`/s/${session}`);
  await page.locator(".conversation").getByText("prompt 14499").waitFor();
  await page.evaluate(() => {
    globalThis.long = [];
    new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask" });
  });
  const pane = page.locator(".conversation");
  await pane.hover();
  // Scroll like a user: steadily, then with a fling, then by dragging the bar.
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
  row(
    `tasks over 50 ms while scrolling ${last_sequence} events`,
    `${long.length}${
      long.length > 0
        ? ` (${long
            .sort((a, b) => b - a)
            .slice(0, 8)
            .join(", ")} ms)`
        : ""
    }; ${elements} elements, heap ${round(usedSize / 1e6)} MB`,
    "0",
    long.length === 0,
  );
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
  const sessions = await eventually(
    "all are known",
    async () => {
      const found = await count();
      return found >= 1_990 ? found : undefined;
    },
    120_000,
  );
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
  row(
    `first paint of ${sessions} sessions, cold, processor 4 times slower, median of 5`,
    `${middle(0)} ms, the list ${middle(1)} ms`,
    "1,000 ms",
    middle(1) <= 1_000,
  );
  await visitor.close();
}
