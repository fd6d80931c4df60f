// Lost connections: the page never shows old data as current, and recovers without help.

import assert from "node:assert/strict";
import { test } from "node:test";
import { cardOf, ready, Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";

setup();

const state = (page) => page.locator(".connection");

test("offline and back: the page says so, and shows what happened meanwhile", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await state(page).filter({ hasText: "Live" }).waitFor();
  await visitor.context.setOffline(true);
  await state(page)
    .filter({ hasText: /Offline|Connecting/ })
    .waitFor();
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000301", "meanwhile");
  await agent.begin("Meanwhile");
  await agent.known();
  await visitor.context.setOffline(false);
  await state(page).filter({ hasText: "Live" }).waitFor();
  await page.locator(".session-row", { hasText: "meanwhile" }).waitFor();
  await visitor.close();
});

test("without a connection, a view says so once, and reads the rest when it is back", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await state(page).filter({ hasText: "Live" }).waitFor();
  await visitor.context.setOffline(true);
  const banner = page.getByRole("alert").filter({ hasText: "Not connected" });
  await banner.waitFor({ timeout: 30_000 });
  for (const name of ["Overview", "Devices"]) {
    await page.getByRole("link", { name }).first().click();
    await page.getByText("Not read yet").first().waitFor();
    assert.equal(await page.getByText("Not read yet").filter({ visible: true }).count(), 1, name);
    assert.equal(await page.getByText(/cannot be reached/).count(), 0, name);
  }
  await visitor.context.setOffline(false);
  await state(page).filter({ hasText: "Live" }).waitFor({ timeout: 30_000 });
  await page.getByText("this device", { exact: true }).waitFor();
  assert.equal(await page.getByText("Not read yet").count(), 0);
  await visitor.close();
});

test("a server that is killed and started again is found again; without it nothing can be decided", async () => {
  const visitor = await Visitor.paired(browser, world);
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000302", "killed");
  await agent.begin("Wait for me");
  const told = agent.ask("Bash", { command: "touch survives" }, "100");
  const approval = await agent.pending();
  const page = await visitor.open("/approvals");
  const card = cardOf(page, approval);
  const allow = card.locator("button.allow");
  await ready(allow);
  const { port } = new URL(world.url);
  await world.kill();
  await state(page)
    .filter({ hasText: /Offline|Connecting/ })
    .waitFor();
  await card.locator("button.allow[aria-disabled=true]").waitFor();
  await page.getByRole("alert").filter({ hasText: "Not connected" }).waitFor({ timeout: 30_000 });
  await world.serve("--listen", `127.0.0.1:${port}`);
  await state(page).filter({ hasText: "Live" }).waitFor({ timeout: 30_000 });
  await page.getByRole("alert").filter({ hasText: "Not connected" }).waitFor({ state: "detached" });
  await page.reload();
  await ready(card.locator("button.allow"));
  await card.locator("button.allow").click();
  await card
    .getByText(/^Allowed|changed|restarted/i)
    .first()
    .waitFor();
  if ((await world.api(`/api/v1/approvals/${approval.id}`)).state === "pending") {
    await ready(card.locator("button.allow"));
    await card.locator("button.allow").click();
  }
  assert.equal((await told).hookSpecificOutput.decision.behavior, "allow");
  await visitor.close();
});

test("ten tabs of one browser are all live, and each decides", async () => {
  const visitor = await Visitor.paired(browser, world);
  const tabs = [];
  for (let number = 0; number < 10; number += 1) tabs.push(await visitor.open("/approvals"));
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000303", "tabs");
  await agent.begin("Ask ten times");
  for (const [number, tab] of tabs.entries()) {
    const told = agent.ask("Bash", { command: `echo tab ${number}` }, "100");
    const approval = await agent.pending();
    for (const other of tabs) await cardOf(other, approval).waitFor();
    await tab.bringToFront();
    const allow = cardOf(tab, approval).locator("button.allow");
    await ready(allow);
    await allow.click();
    assert.equal((await told).hookSpecificOutput.decision.behavior, "allow", `tab ${number}`);
  }
  for (const tab of tabs) await state(tab).filter({ hasText: "Live" }).waitFor();
  await visitor.close();
});

test("what arrives late is not shown as live", async () => {
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.context.newPage();
  let [late, due] = [0, 0];
  await page.routeWebSocket(/\/api\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((piece) => {
      due = Math.max(due, Date.now() + late);
      setTimeout(() => socket.send(piece), due - Date.now());
    });
  });
  await page.goto(`${world.url}/`);
  await state(page).filter({ hasText: "Live" }).waitFor();
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000304", "late");
  await agent.begin("First");
  await page.locator(".session-row", { hasText: "late" }).waitFor();
  late = 4_000;
  await agent.hook("PreToolUse", { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "toolu_late" });
  await state(page)
    .filter({ hasText: /Behind.*by \d+ s/ })
    .waitFor();
  late = 0;
  await state(page).filter({ hasText: "Live" }).waitFor();
  await visitor.close();
});

test("where no WebSocket gets through, events of a request do", async () => {
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.context.newPage();
  await page.routeWebSocket(/\/api\/v1\/ws/, (socket) => socket.close());
  // Simulates the browser's behaviour for a connection that is cut before it opens.
  await page.addInitScript(() => {
    const Real = globalThis.WebSocket;
    globalThis.WebSocket = class extends Real {
      set onopen(_) {}
    };
  });
  await page.goto(`${world.url}/`);
  await state(page).filter({ hasText: "Live" }).waitFor();
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000305", "without-sockets");
  await agent.begin("Without");
  await page.locator(".session-row", { hasText: "without-sockets" }).waitFor();
  await visitor.close();
});
