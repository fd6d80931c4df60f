// The list of sessions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

const id = (number) => `5a6b7c8d-0000-4000-8000-0000000000${String(number).padStart(2, "0")}`;
let agents;
setup({ prepare });
async function prepare() {
  agents = {};
  const make = async (name, number, project, provider = "claude") => {
    const agent = world.agent(provider, id(number), project);
    if (provider === "claude") agent.transcribe([{ prompt: `Work of ${name}` }]);
    await agent.begin(`Work of ${name}`);
    agents[name] = agent;
    return agent;
  };
  await make("worker", 1, "engine");
  await (await make("finisher", 2, "docs")).hook("Stop", { stop_hook_active: false });
  const asker = await make("asker", 3, "billing");
  void asker.ask("Bash", { command: "npm publish" }, "120");
  const second = await make("second", 4, "billing", "codex");
  void second.ask("Bash", { command: "make release" }, "120");
  for (const agent of [agents.worker, agents.finisher, asker]) await eventually("its transcript is read", async () => (await agent.known()).title !== null);
  await asker.pending();
  await second.pending();
}

const rows = (page) => page.locator("a.session-link");
const idsOf = (page) => rows(page).evaluateAll((links) => links.map((link) => link.dataset.session));

test("sessions that need a person come first, in the server's order", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  const { items } = await world.api("/api/v1/attention");
  const wanted = items.map((item) => item.session_id);
  assert.ok(wanted.length >= 3);
  await eventually("the order is that of the server", async () => (await idsOf(page)).slice(0, wanted.length).join() === wanted.join());
  await page.getByRole("heading", { name: /Needs you/ }).waitFor();
  await page.getByRole("heading", { name: /Working/ }).waitFor();
  // A shape and a word show the state, not only its colour.
  const first = rows(page).first();
  assert.match(await first.innerText(), /Needs approval/);
  assert.equal(await first.locator("svg.sign").count(), 1);
  assert.match(await page.title(), /^\(\d\) capture$/);
  await visitor.close();
});

test("on a phone no word of a state is cut without an ellipsis", async () => {
  const visitor = await Visitor.paired(browser, world, "control", { phone: true });
  const { page } = visitor;
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    await rows(page).first().waitFor();
    await page.locator(".cell-place .ellipsis:first-child").evaluateAll((names) => {
      for (const name of names) name.textContent = "a-directory-with-a-very-long-name";
    });
    const cut = await page.locator(".cell-state, .cell-state *, .cell-place *").evaluateAll((elements) =>
      elements
        .filter((element) => {
          const { overflowX, textOverflow } = getComputedStyle(element);
          return element.scrollWidth > element.clientWidth + 1 && overflowX === "hidden" && textOverflow !== "ellipsis";
        })
        .map((element) => `${element.className} ${element.textContent}`)
        .filter((words) => !words.startsWith("visually-hidden")),
    );
    assert.deepEqual(cut, [], `${width}`);
  }
  await visitor.close();
});

test("a filter that leaves nothing can be cleared, and names keys only where there are some", async () => {
  for (const phone of [false, true]) {
    const visitor = await Visitor.paired(browser, world, "control", { phone });
    const { page } = visitor;
    await rows(page).first().waitFor();
    await page.getByLabel("Filter the sessions").fill("nothing like this");
    await page.getByRole("heading", { name: "No session matches" }).waitFor();
    assert.equal(await page.locator(".empty kbd").isVisible(), !phone);
    await page.getByRole("button", { name: "Clear the filter" }).click();
    await rows(page).first().waitFor();
    assert.equal(await page.getByLabel("Filter the sessions").inputValue(), "");
    assert.equal(new URL(page.url()).search, "");
    await visitor.close();
  }
});

test("the toolbar stays in its place, whichever sessions are shown", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  const place = () =>
    page
      .locator(".toolbar .select")
      .first()
      .evaluate((element) => element.getBoundingClientRect().left);
  const before = await place();
  for (const name of ["All", "Archived", "Active"]) {
    await page.getByRole("button", { name, exact: true }).click();
    await page.locator("[aria-pressed=true]", { hasText: name }).waitFor();
    assert.equal(await place(), before, name);
  }
  await visitor.close();
});

test("a key leads to the next session that needs a person, and back", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  const { items } = await world.api("/api/v1/attention");
  for (const item of items) {
    await page.keyboard.press("]");
    await page.waitForURL(`**/s/${item.session_id}`);
  }
  await page.keyboard.press("[");
  await page.waitForURL(`**/s/${items.at(-2).session_id}`);
  await page.keyboard.press("`");
  await page.waitForURL(`${world.url}/`);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await visitor.close();
});

test("the list is filtered, and the palette finds sessions and texts", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("engine");
  await eventually("one session is left", async () => (await rows(page).count()) === 1);
  await page.waitForURL(/q=engine/);
  await page.reload();
  await eventually("the filter is in the address", async () => (await rows(page).count()) === 1);
  await page.keyboard.press("Escape");
  await page.locator("body").press("Control+k");
  await page.getByRole("combobox", { name: "Search sessions, pages and texts" }).fill("finisher");
  await page.getByRole("option").filter({ hasText: "Work of finisher" }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Work of finisher" }).waitFor();
  await visitor.close();
});

test("a session without a title is called by its agent and its directory", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  const { id, title } = await agents.second.known();
  assert.equal(title, null);
  await page.locator(`[data-session="${id}"]`).getByText("Codex in home/billing").waitFor();
  await page.getByRole("button", { name: "Pin, snooze or archive: Codex in home/billing" }).waitFor();
  await page.locator("body").press("Control+k");
  await page.getByRole("combobox", { name: "Search sessions, pages and texts" }).fill("codex in home");
  await page.getByRole("option").filter({ hasText: "Codex in home/billing" }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Codex in home/billing" }).waitFor();
  await eventually("the tab says which session it shows", async () => /^\(\d\) Codex in home\/billing · capture$/.test(await page.title()));
  await page.getByRole("link", { name: "Overview" }).first().click();
  await eventually("and which page", async () => /^\(\d\) Overview · capture$/.test(await page.title()));
  await visitor.close();
});

test("on a phone the lists of the toolbar are behind a button", async () => {
  const visitor = await Visitor.paired(browser, world, "control", { phone: true });
  const { page } = visitor;
  await rows(page).first().waitFor();
  const group = page.getByRole("combobox", { name: "Group" });
  assert.equal(await group.isVisible(), false);
  await page.getByRole("button", { name: "Group and agent" }).tap();
  await group.selectOption("project");
  await page.getByRole("heading", { name: /^engine/ }).waitFor();
  await visitor.close();
});

test("pinned, snoozed and archived are the same in every tab", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  const other = await visitor.open("/");
  const row = (page) => page.locator(".session-row").filter({ hasText: "Work of worker" });
  await row(page).waitFor();
  await row(other).waitFor();
  const press = async (name) => {
    await row(page)
      .getByRole("button", { name: /Pin, snooze/ })
      .click();
    await page.getByRole("menuitem", { name, exact: true }).click();
  };
  await press("Pin");
  await row(other).getByText("pinned").waitFor();
  await press("Archive");
  await row(other).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Archived", exact: true }).click();
  await row(page).waitFor();
  await press("Bring back from the archive");
  await row(other).waitFor();
  await page.goto(`${world.url}/`);
  await row(page).waitFor();
  await press("Snooze for an hour");
  await row(other).waitFor({ state: "detached" });
  await other.getByRole("button", { name: /Snoozed/ }).click();
  await row(other).waitFor();
  await visitor.close();
});

test("archiving and snoozing can be taken back", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  const row = page.locator(".session-row").filter({ hasText: "Work of finisher" });
  for (const name of ["Archive", "Snooze for an hour"]) {
    await row.waitFor();
    await row.getByRole("button", { name: /Pin, snooze/ }).click();
    await page.getByRole("menuitem", { name, exact: true }).click();
    await row.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo" }).first().click();
    await row.waitFor();
  }
  const { marks } = await agents.finisher.known();
  assert.deepEqual([marks?.archived ?? false, marks?.snoozed_until ?? null], [false, null]);
  await visitor.close();
});

test("the palette says what is wrong with a query, and shows the hits of a session together", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  const many = world.agent("claude", id(11), "many");
  many.transcribe([{ prompt: "Work of many" }, ...Array.from({ length: 20 }, (_, index) => ({ answer: `The zebra number ${index} is here.` }))]);
  await many.begin("Work of many");
  const found = await eventually("the texts are found", async () => {
    const page = await world.api("/api/v1/search?q=zebra&limit=50");
    return page.hits.length === 20 ? page : undefined;
  });
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Search sessions, pages and texts" });
  const wrong = await world.api("/api/v1/search?q=kind%3Acommand%20x").then(
    () => null,
    (cause) => cause.message,
  );
  assert.match(wrong, /422|400/);
  await field.fill("kind:command x");
  await page.getByRole("alert").filter({ hasText: /kind/ }).waitFor();
  assert.equal(await page.getByText("Nothing found").count(), 0);
  await field.fill("zebra");
  const group = page.getByRole("option").filter({ hasText: "zebra number" });
  await eventually("the hits of a session are together", async () => (await group.count()) === 3);
  assert.equal(await page.getByRole("alert").count(), 0);
  assert.equal(await group.filter({ hasText: "Work of many" }).count(), 1, "its title stands once");
  await page
    .getByRole("option")
    .filter({ hasText: /more hits|All \d+ hits/ })
    .click();
  await eventually("all hits are shown", async () => (await page.getByRole("option").filter({ hasText: "zebra number" }).count()) === found.hits.length);
  await page.getByRole("option").filter({ hasText: "zebra number" }).last().click();
  await page.waitForURL(/\/s\/.+[?]at=\d+/);
  await visitor.close();
});

test("the palette begins with what needs a person most, under its whole title", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  const { items } = await world.api("/api/v1/attention");
  const titles = await Promise.all(items.slice(0, 3).map(async ({ session_id }) => (await world.api(`/api/v1/sessions/${session_id}`)).title));
  const deep = world.agent("claude", id(8), `deep/${"a-long-name-of-a-directory-".repeat(5)}`);
  deep.transcribe([{ prompt: "Upgrade React from 18 to 19 in the storefront" }]);
  await deep.begin("Upgrade React");
  await page.keyboard.press("Control+k");
  const labels = page.getByRole("option").locator(".palette-label");
  await eventually("the most urgent are first", async () =>
    (await labels.allInnerTexts()).slice(0, 3).every((label, index) => titles[index] === null || label === titles[index]),
  );
  await page.getByRole("combobox", { name: "Search sessions, pages and texts" }).fill("storefront");
  const title = page.getByRole("option").locator(".palette-label", { hasText: "Upgrade React" }).first();
  await title.waitFor();
  assert.ok(await title.evaluate((element) => element.scrollWidth <= element.clientWidth), "its title is whole");
  await visitor.close();
});

test("more hits are asked for once, however often they are chosen", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  let asked = 0;
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route("**/api/v1/search*", async (route) => {
    const isMore = new URL(route.request().url()).searchParams.has("cursor");
    if (isMore) {
      asked += 1;
      await held;
    }
    await route.fulfill({ json: { hits: [], matches: 100, next_cursor: isMore ? null : "more" } });
  });
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search sessions, pages and texts" }).fill("zebra");
  const more = page.getByRole("option").filter({ hasText: "All hits: 100 more" });
  for (let press = 0; press < 3; press += 1) await more.click();
  release();
  await more.waitFor({ state: "detached" });
  assert.equal(asked, 1);
  await visitor.close();
});

test("a device for reading changes nothing", async () => {
  const visitor = await Visitor.paired(browser, world, "read");
  const { page } = visitor;
  await rows(page).first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Pin, snooze/ }).count(), 0);
  await page.goto(`${world.url}/approvals`);
  await page.getByText("This device may only look.").first().waitFor();
  assert.equal(await page.getByRole("button", { name: /Allow|Deny/ }).count(), 0);
  await visitor.close();
});

test("a new need does not move the row under the pointer", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  await rows(page).first().waitFor();
  const before = await idsOf(page);
  await rows(page).nth(1).hover();
  await page.mouse.move(400, 330);
  const agent = world.agent("claude", id(9), "late");
  await agent.begin("A late one");
  await page.mouse.move(410, 334);
  const { id: late } = await agent.known();
  await page.getByRole("button", { name: /order has changed/ }).waitFor();
  assert.ok(!(await idsOf(page)).includes(late));
  assert.deepEqual((await idsOf(page)).slice(0, before.length), before);
  await page.getByRole("button", { name: /order has changed/ }).click();
  await eventually("the new one is there", async () => (await idsOf(page)).includes(late));
  await visitor.close();
});

test("what has ended and what is archived is found among all sessions", async () => {
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open("/?view=all");
  await rows(page).first().waitFor();
  const { sessions } = await world.api("/api/v1/sessions?active=all&limit=1000");
  const wanted = sessions.filter((session) => session.parent_session_id === null && session.merged_into == null);
  await eventually("all are listed", async () => (await page.locator("a.session-link").count()) === wanted.length - (await snoozed(page)));
  await visitor.close();
});

/** Opens the group of sessions that an earlier test snoozed. */
const snoozed = async (page) =>
  Number(
    (
      await page
        .getByRole("button", { name: /Snoozed/ })
        .locator(".count")
        .allInnerTexts()
    )[0] ?? 0,
  );
