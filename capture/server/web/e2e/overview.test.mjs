// The overview: readable pictures, and the figures behind each.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

setup({ prepare });
async function prepare() {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000601", "figures");
  agent.transcribe([{ prompt: "Count" }, { bash: "seq 3" }, { output: "1\n2\n3" }, { answer: "Done." }]);
  await agent.begin("Count");
  const told = agent.ask("Bash", { command: "make" });
  const { id } = await agent.pending();
  await world.api(`/api/v1/approvals/${id}/decision`, { decision: "allow" });
  await told;
  await eventually("tokens are counted", async () => (await world.api("/api/v1/usage?by=agent")).total.calls > 0);
}

/** Texts that extend beyond a picture, and pairs of texts that overlap. */
function faults(picture) {
  const around = picture.getBoundingClientRect();
  const boxes = [...picture.querySelectorAll("text")].map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
  const outside = boxes.filter(
    ({ box }) => box.left < around.left - 1 || box.right > around.right + 1 || box.top < around.top - 1 || box.bottom > around.bottom + 1,
  );
  const meets = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  const pairs = boxes.flatMap(({ text, box }, index) =>
    boxes
      .slice(index + 1)
      .filter((other) => meets(box, other.box))
      .map((other) => `${text} and ${other.text}`),
  );
  return [...outside.map(({ text }) => `${text} is outside`), ...pairs];
}

for (const width of [390, 1280, 1920]) {
  for (const days of [1, 7, 30, 90]) {
    test(`no label is cut or covers another one: ${width} px, ${days} days`, async () => {
      const visitor = await Visitor.paired(browser, world, "read", { viewport: { width, height: 900 } });
      const page = await visitor.open(`/overview?days=${days}`);
      await page.getByRole("heading", { name: /per day by agent/ }).waitFor();
      const pictures = page.locator(".chart svg, .lane-rows .axis svg");
      await eventually("the pictures are drawn", async () => (await pictures.count()) >= 4);
      for (const picture of await pictures.all()) assert.deepEqual(await picture.evaluate(faults), []);
      await visitor.close();
    });
  }
}

test("tokens of a day are divided by agent, by model or by directory", async () => {
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open("/overview?days=7");
  const figure = page.locator("figure").filter({ has: page.getByRole("heading", { name: /^Tokens per day/ }) });
  await figure.getByRole("button", { name: "Table", exact: true }).click();
  await figure.getByRole("columnheader", { name: "Claude Code" }).waitFor();
  await page.getByRole("group", { name: "Rows" }).getByRole("button", { name: "model" }).click();
  await figure.getByRole("heading", { name: "Tokens per day by model" }).waitFor();
  await figure.getByRole("columnheader", { name: "(Claude Code)" }).waitFor();
  await page.getByRole("group", { name: "Rows" }).getByRole("button", { name: "project" }).click();
  await figure.getByRole("heading", { name: "Tokens per day by project" }).waitFor();
  await figure.getByRole("columnheader", { name: "figures" }).waitFor();
  await visitor.close();
});

test("every picture has a table of its figures", async () => {
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open("/overview?days=30");
  await page.getByRole("heading", { name: /per day by agent/ }).waitFor();
  const pictures = page.locator("figure:has(svg), .lanes:has(svg)");
  // Each picture has its button once its figures are loaded; the lanes come from a separate request.
  const tables = page.getByRole("button", { name: "Table", exact: true });
  await page.locator(".lanes:has(svg)").waitFor();
  const figures = await page.locator("figure, .lanes").count();
  await eventually("all are drawn", async () => (await pictures.count()) === figures && (await tables.count()) === figures);
  const count = await pictures.count();
  assert.ok(count >= 4);
  for (let index = 0; index < count; index += 1) await page.getByRole("button", { name: "Table", exact: true }).first().click();
  assert.equal(await pictures.count(), 0);
  assert.equal(await page.locator(".figure-table table").count(), count);
  await visitor.close();
});

test("a quota whose reset has passed is shown as past", async () => {
  const visitor = await Visitor.paired(browser, world, "read");
  const { page } = visitor;
  const day = 86_400_000;
  await page.route("**/api/v1/usage?*", async (route) => {
    const answer = await route.fetch();
    const report = await answer.json();
    report.quotas = [
      { provider: "claude", name: "5 h", used_percent: 40, resets_at: new Date(Date.now() + day).toISOString(), at: new Date().toISOString() },
      {
        provider: "codex",
        name: "weekly",
        used_percent: 97,
        resets_at: new Date(Date.now() - 17 * day).toISOString(),
        used_up_at: new Date(Date.now() - 18 * day).toISOString(),
        at: new Date(Date.now() - 19 * day).toISOString(),
      },
    ];
    await route.fulfill({ response: answer, json: report });
  });
  await page.goto(`${world.url}/overview`);
  await page.getByText(/^40 % used, resets/).waitFor();
  await page.getByText(/^Reset .+; not reported since\. Before: 97 % used$/).waitFor();
  assert.equal(await page.locator(".quotas meter").count(), 1);
  await visitor.close();
});
