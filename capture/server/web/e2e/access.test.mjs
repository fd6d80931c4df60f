// Accessibility of every view: axe finds nothing, nothing overflows a small screen, every view has its heading.

import assert from "node:assert/strict";
import { test } from "node:test";
import { check, settled } from "./axe.mjs";
import { ready, Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

let paths;
setup({ prepare });
async function prepare() {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000501", "access");
  agent.transcribe([
    { prompt: "Look at **this**" },
    { answer: "# Title\n\n- a\n- b\n\n```sh\nls\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |" },
    { bash: "ls" },
    { output: "\x1b[31mred\x1b[0m" },
  ]);
  await agent.begin("Look");
  const edits = world.agent("codex", "5a6b7c8d-0000-4000-8000-000000000502", "edits");
  await edits.begin("Edit");
  void agent.ask("Bash", { command: "rm -rf ./x \u200b p\u0430y" }, "300");
  void edits.ask("Bash", { command: "make" }, "300");
  const asks = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000503", "asks");
  await asks.begin("Ask");
  void asks.ask(
    "AskUserQuestion",
    { questions: [{ question: "Which?", header: "Kind", options: [{ label: "A", description: "first" }, { label: "B" }] }] },
    "300",
  );
  const plain = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000504", "plain");
  await plain.begin("Plain");
  void plain.ask("Bash", { command: "make lint-once" }, "300");
  for (const one of [agent, edits, asks, plain]) await one.pending();
  const { id } = await agent.known();
  await world.api(`/api/v1/sessions/${id}/labels`, { labels: { reviewer: "somebody-with-a-long-name@a-long-domain.example" } }, "PUT");
  await world.play("claude/S12-subagent");
  world.spawn(["run", "--detach", "--name", "shell", "--size", "80x24", "--", "sh"]).stdin.end();
  const run = await eventually("the run is there", async () => (await world.api("/api/v1/runs")).runs[0]);
  paths = {
    sessions: "/",
    all: "/?view=all&group=project",
    approvals: "/approvals",
    decided: "/approvals?view=decided",
    archived: "/?view=archived",
    elsewhere: "/no/such/view",
    session: `/s/${id}`,
    terminal: `/terminal/${run.id}`,
    overview: "/overview",
    devices: "/devices",
    missing: "/s/ZZZZZZZZ",
  };
}

for (const [theme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 390],
  ["dark", 390],
]) {
  test(`axe finds nothing in any view: ${theme}, ${width} px`, async () => {
    const visitor = await Visitor.paired(browser, world, "control", { colorScheme: theme, viewport: { width, height: 900 }, reducedMotion: "reduce" });
    for (const [name, path] of Object.entries(paths)) {
      const page = await visitor.open(path);
      await check(page, name);
      if (name === "session" && width > 1000) {
        await page.locator(".tool-line").first().click();
        await page.getByRole("slider").focus();
        await page.keyboard.press("ArrowLeft");
        await page.locator(".moment .claims").waitFor();
        await check(page, "session, opened");
      }
      if (name === "session" && width < 1000) {
        await page.getByRole("tab", { name: "Details" }).click();
        await check(page, "session, details");
      }
      if (name === "sessions") {
        await page.keyboard.press("Control+k");
        await page.getByRole("listbox").waitFor();
        await check(page, "palette");
        await page.keyboard.press("Escape");
        await page.keyboard.press("?");
        await page.getByRole("dialog", { name: "Keys" }).waitFor();
        await check(page, "keys");
        await page.keyboard.press("Escape");
        await page.getByLabel("Filter the sessions").fill("nothing like this");
        await eventually("no session is left", async () => (await page.locator("a.session-link").count()) === 0);
        await check(page, "sessions, none found");
      }
      if (name === "approvals") {
        // The rule of a request is fetched once the request is in view.
        const card = page.locator("[data-approval]").filter({ hasText: "make lint-once" });
        await card.scrollIntoViewIfNeeded();
        await card.getByLabel("Always").check();
        await ready(card.locator("button.allow"));
        await card.locator("button.allow").click();
        await page.getByRole("dialog").getByLabel("Code").waitFor();
        await check(page, "step-up");
      }
      await page.close();
    }
    await visitor.close();
    const guest = await Visitor.make(browser, world, { colorScheme: theme, viewport: { width, height: 900 } });
    await check(await guest.open("/pair"), "pair");
    await guest.close();
  });
}

for (const width of [320, 390, 768, 1280, 3840]) {
  test(`no view is wider than the screen: ${width} px`, async () => {
    const visitor = await Visitor.paired(browser, world, "control", { viewport: { width, height: 800 } });
    for (const [name, path] of Object.entries(paths)) {
      const page = await visitor.open(path);
      await settled(page);
      const fits = async (name) => {
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
      };
      await fits(name);
      if (name === "session" && width < 1000) {
        await page.getByRole("tab", { name: "Details" }).click();
        await page.getByText("reviewer=").waitFor();
        await fits("details");
      }
      // These views fill the window and scroll inside it.
      if (width > 1000 && (name === "session" || name === "terminal")) {
        assert.equal(await page.evaluate(() => document.documentElement.scrollHeight - innerHeight), 0, `${name} is longer than the window`);
      }
      await page.close();
    }
    await visitor.close();
  });
}

/** Targets smaller than 44 pixels in height or width, measured by where a press would land. */
function small() {
  const hit = (target, x, y) => {
    const found = document.elementFromPoint(x, y);
    return found !== null && target.contains(found);
  };
  const inText = (element) => getComputedStyle(element).display === "inline" && !element.matches(".lane-name");
  const found = [];
  for (const element of document.querySelectorAll("a[href], button, select, summary, textarea, input, [role=option]")) {
    if (
      !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ||
      element.matches(".skip, .terminal-field") ||
      getComputedStyle(element).pointerEvents === "none" ||
      inText(element)
    )
      continue;
    element.scrollIntoView({ block: "center", inline: "center" });
    // Pressing a field's label presses the field.
    const target = element.closest("label") ?? element;
    const { left, top, width, height } = target.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    const reach = (right, down) => {
      let far = 0;
      while (far < 44 && hit(target, x + right * (far + 1), y + down * (far + 1))) far += 1;
      return far;
    };
    const tall = reach(0, -1) + 1 + reach(0, 1);
    const wide = reach(-1, 0) + 1 + reach(1, 0);
    // Positions between two pixels are rounded.
    if (tall < 43 || wide < 43)
      found.push(
        `${element.localName}.${element.className} ${(element.getAttribute("aria-label") ?? element.textContent).trim().slice(0, 30)}: ${Math.round(width)} × ${Math.round(height)}`,
      );
  }
  return [...new Set(found)];
}

test("a finger hits everything that can be pressed", async () => {
  const visitor = await Visitor.paired(browser, world, "control", { phone: true });
  const found = [];
  for (const [name, path] of Object.entries(paths)) {
    const page = await visitor.open(path);
    await settled(page);
    found.push(...(await page.evaluate(small)).map((what) => `${name}: ${what}`));
    if (name === "session") {
      await page.getByRole("tab", { name: "Details" }).tap();
      await page.evaluate(() => document.querySelectorAll(".side details").forEach((panel) => (panel.open = true)));
      found.push(...(await page.evaluate(small)).map((what) => `details: ${what}`));
    }
    await page.close();
  }
  await visitor.close();
  assert.deepEqual(found, []);
});

test("a pointer has at least 24 pixels for everything that stands alone", async () => {
  const visitor = await Visitor.paired(browser, world, "control", { viewport: { width: 1280, height: 900 } });
  const found = [];
  for (const [name, path] of Object.entries(paths)) {
    const page = await visitor.open(path);
    await settled(page);
    const small = await page.evaluate(() =>
      [...document.querySelectorAll("a[href], button, select, summary, textarea, input:not([type=radio], [type=checkbox])")]
        .filter((element) => {
          const { width, height } = element.getBoundingClientRect();
          const isInText = getComputedStyle(element).display === "inline";
          return element.checkVisibility({ visibilityProperty: true }) && !isInText && !element.matches(".terminal-field") && Math.min(width, height) < 24;
        })
        .map((element) => `${element.className} ${element.textContent.trim().slice(0, 30)}`),
    );
    found.push(...small.map((what) => `${name}: ${what}`));
    await page.close();
  }
  await visitor.close();
  assert.deepEqual(found, []);
});

test("on a phone no word of a session's head lies under a button", async () => {
  const visitor = await Visitor.paired(browser, world, "control", { phone: true });
  const sessions = (await world.api("/api/v1/sessions?active=all&limit=100")).sessions;
  assert.ok(sessions.some(({ run_id }) => run_id !== null));
  for (const { id } of sessions) {
    const page = await visitor.open(`/s/${id}`);
    await page.locator(".session-head").waitFor();
    await settled(page);
    const hidden = await page.evaluate(() => {
      const buttons = [...document.querySelectorAll(".session-actions > *")].map((button) => button.getBoundingClientRect());
      return [...document.querySelectorAll(".session-facts > *, .session-head h1")].flatMap((words) => {
        const range = document.createRange();
        range.selectNodeContents(words);
        const lies = (box) =>
          buttons.some(
            (button) =>
              box.width > 2 && box.left < button.right - 1 && box.right > button.left + 1 && box.top < button.bottom - 1 && box.bottom > button.top + 1,
          );
        return [...range.getClientRects()].some(lies) ? [words.textContent] : [];
      });
    });
    assert.deepEqual(hidden, [], id);
    await page.close();
  }
  await visitor.close();
});

for (const phone of [false, true]) {
  test(`what is shown stays in its place while a view loads${phone ? ", on a phone" : ""}`, async () => {
    const visitor = await Visitor.paired(browser, world, "control", phone ? { phone } : { viewport: { width: 1280, height: 800 } });
    // Answers arrive one after another.
    let answers = 0;
    await visitor.context.route("**/api/v1/**", async (route) => {
      answers += 1;
      await new Promise((resolve) => setTimeout(resolve, 60 + 40 * (answers % 5)));
      await route.continue().catch(() => undefined);
    });
    for (const [name, path] of Object.entries(paths)) {
      const page = await visitor.context.newPage();
      await page.addInitScript(() => {
        globalThis.moved = 0;
        new PerformanceObserver((list) => list.getEntries().forEach((entry) => (globalThis.moved += entry.value))).observe({
          type: "layout-shift",
          buffered: true,
        });
      });
      await page.goto(world.url + path);
      await settled(page);
      const moved = await page.evaluate(() => globalThis.moved);
      assert.ok(moved <= 0.1, `${name}: ${moved.toFixed(3)}`);
      await page.close();
    }
    await visitor.context.unrouteAll({ behavior: "ignoreErrors" });
    await visitor.close();
  });
}

test("nothing moves for those who want no motion", async () => {
  const visitor = await Visitor.paired(browser, world, "read", { reducedMotion: "reduce" });
  const { page } = visitor;
  await settled(page);
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  await visitor.close();
});
