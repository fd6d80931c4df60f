// Browser notifications: the service worker is the page's own, and a server without notifications causes no error.

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

setup();

test("turning notices on registers the page's own worker, under its policy", async () => {
  const visitor = await Visitor.paired(browser, world);
  await visitor.context.grantPermissions(["notifications"], { origin: world.url });
  const { x, y } = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey.export({ format: "jwk" });
  const public_key = Buffer.concat([Buffer.from([4]), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]).toString("base64url");
  await visitor.context.route("**/api/v1/push", (route) => route.fulfill({ json: { public_key } }));
  const page = await visitor.open("/devices");
  await page.getByRole("button", { name: "Turn on" }).click();
  // This browser has no push service, so the test checks only the worker.
  const script = await eventually("the worker runs", () =>
    page.evaluate(() => navigator.serviceWorker.getRegistration("/").then((found) => found?.active?.scriptURL)),
  );
  assert.equal(script, `${world.url}/sw.js`);
  const refused = await page.evaluate(async () => {
    try {
      await navigator.serviceWorker.register("/assets/app.js");
      return null;
    } catch (cause) {
      return cause.name;
    }
  });
  assert.equal(refused, "TypeError", "another script is no worker of this page");
  await page.evaluate(() => (globalThis.reports.length = 0));
  visitor.errors.length = 0;
  await visitor.close();
});

test("a server that sends no notices says so", async () => {
  const visitor = await Visitor.paired(browser, world);
  await visitor.context.route("**/api/v1/push", (route) => route.fulfill({ status: 404, json: { error: { code: "not_found", message: "no such route" } } }));
  const page = await visitor.open("/devices");
  await page.getByText("This server does not send notices to browsers.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Turn on" }).count(), 0);
  await visitor.close();
});

test("a link to a request behind a hash opens it", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000601", "linked");
  await agent.begin("Link me");
  void agent.ask("Bash", { command: "touch linked" }, "60");
  const { id } = await agent.pending();
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open(`/approvals#${id}`);
  await eventually("the card has the focus", () => page.evaluate((id) => document.activeElement?.getAttribute("data-approval") === id, id));
  await visitor.close();
});
