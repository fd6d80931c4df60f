// Breaks: nothing old is shown as current, and everything comes back by itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Visitor, cardOf, ready } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";

setup();

const state = (page) => page.locator(".connection");

test("offline and back: the page says so, and shows what happened meanwhile", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await state(page).filter({ hasText: "Live" }).waitFor();
  await visitor.context.setOffline(true);
  await state(page).filter({ hasText: /Offline|Connecting/ }).waitFor();
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000301", "meanwhile");
  await agent.begin("Meanwhile");
  await agent.known();
  await visitor.context.setOffline(false);
  await state(page).filter({ hasText: "Live" }).waitFor();
  await page.locator(".session-row", { hasText: "meanwhile" }).waitFor();
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
  await state(page).filter({ hasText: /Offline|Connecting/ }).waitFor();
  await card.locator("button.allow[aria-disabled=true]").waitFor();
  await page.getByRole("alert").filter({ hasText: "Not connected" }).waitFor({ timeout: 30_000 });
  await world.serve("--listen", `127.0.0.1:${port}`);
  await state(page).filter({ hasText: "Live" }).waitFor({ timeout: 30_000 });
  await page.getByRole("alert").filter({ hasText: "Not connected" }).waitFor({ state: "detached" });
  await page.reload();
  await ready(card.locator("button.allow"));
  await card.locator("button.allow").click();
  await card.getByText(/^Allowed|changed|restarted/i).first().waitFor();
  if ((await world.api(`/api/v1/approvals/${approval.id}`)).state === "pending") {
    await ready(card.locator("button.allow"));
    await card.locator("button.allow").click();
  }
  assert.equal((await told).hookSpecificOutput.decision.behavior, "allow");
  await visitor.close();
});
