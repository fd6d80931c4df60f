// axe-core in a page under test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { eventually } from "./world.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Waits until a view has loaded completely. */
export async function settled(page) {
  await page.locator("main h1").first().waitFor({ state: "attached" });
  await eventually("everything is loaded", async () => (await page.locator(".loading").count()) === 0);
}

/** Fails with axe's findings in a view. */
export async function check(page, where) {
  await settled(page);
  // Injected through the debugger, because the page's policy permits no foreign scripts.
  const found = await page.evaluate(`${AXE}; axe.run(document, { runOnly: ${JSON.stringify(TAGS)}, resultTypes: ["violations"] })`);
  const said = found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(" ")} ${failureSummary}`).join(" | ")}`,
  );
  assert.deepEqual(said, [], where);
}
