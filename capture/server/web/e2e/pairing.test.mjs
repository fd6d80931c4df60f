// Signing in: one-time codes, cookies, scopes, revoking.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";

setup();

test("a link pairs the browser once, and the code leaves the address", async () => {
  const visitor = await Visitor.make(browser, world);
  const code = await world.code("control");
  const page = await visitor.open(`/pair#${code}`);
  await page.getByRole("navigation", { name: "Pages", exact: true }).waitFor();
  assert.equal(page.url(), `${world.url}/`);
  assert.ok(!(await page.evaluate(() => JSON.stringify([history.state, document.cookie, { ...localStorage }, { ...sessionStorage }]))).includes(code));
  assert.equal(await page.evaluate(() => document.cookie), "", "the cookie is not for scripts");
  const cookies = await visitor.context.cookies();
  assert.ok(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict");
  await page.goBack().catch(() => undefined);
  assert.ok(!page.url().includes(code));

  const other = await Visitor.make(browser, world);
  const replayed = await other.open(`/pair#${code}`);
  await replayed.getByRole("alert").waitFor();
  assert.equal((await other.context.cookies()).length, 0);
  await other.close();
  await visitor.close();
});

test("wrong codes are refused, and the right one still pairs", async () => {
  const visitor = await Visitor.make(browser, world);
  const code = await world.code("control");
  const page = await visitor.open("/");
  const field = page.getByLabel("Code");
  const answered = () =>
    Promise.all([
      page.waitForResponse((response) => response.request().method() === "POST" && response.url().includes("/api/v1/")),
      page.getByRole("button", { name: "Pair" }).click(),
    ]);
  for (let round = 0; round < 5; round += 1) {
    await field.fill(`WRONG${round}`);
    await answered();
    await page.getByRole("alert").waitFor();
    assert.ok(!(await page.getByRole("alert").innerText()).includes("`"));
  }
  assert.equal((await visitor.context.cookies()).length, 0);
  await field.fill(code);
  await answered();
  assert.equal((await visitor.context.cookies()).length, 1);
  await visitor.close();
});

test("a code is typed by hand, and leads to the page that was asked for", async () => {
  const visitor = await Visitor.make(browser, world);
  const page = await visitor.open("/overview");
  await page.getByLabel("Code").fill(await world.code("read"));
  await page.getByLabel("Name of this device").fill("Kitchen tablet");
  await page.getByRole("button", { name: "Pair" }).click();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await page.goto(`${world.url}/devices`);
  await page.getByText("Kitchen tablet").waitFor();
  await visitor.close();
});

test("a browser that may decide keeps its device when another link is opened", async () => {
  const visitor = await Visitor.paired(browser, world);
  const { devices: first } = await visitor.page.evaluate(() => fetch("/api/v1/devices").then((answer) => answer.json()));
  const page = await visitor.open(`/pair#${await world.code("control")}`);
  await page.waitForURL(`${world.url}/`);
  const { devices: second } = await visitor.page.evaluate(() => fetch("/api/v1/devices").then((answer) => answer.json()));
  assert.equal(second.length, first.length);
  await visitor.close();
});

test("a revoked device is out at once, and one that signs out too", async () => {
  const owner = await Visitor.paired(browser, world);
  const guest = await Visitor.paired(browser, world, "read", { userAgent: "Mozilla/5.0 (iPhone) Version/19.0 Safari/604.1" });
  await guest.page.getByRole("status").filter({ hasText: "Live" }).waitFor();
  await owner.page.goto(`${world.url}/devices`);
  const entry = owner.page.getByRole("listitem").filter({ hasText: "Safari on iPhone" });
  await entry.getByRole("button", { name: "Revoke" }).click();
  await entry.getByRole("button", { name: "Revoke now" }).click();
  await guest.page.getByRole("heading", { name: "Pair this browser" }).waitFor();

  const self = owner.page.getByRole("listitem").filter({ hasText: "this device" });
  await self.getByRole("button", { name: "Sign out" }).click();
  await self.getByRole("button", { name: "Sign out now" }).click();
  await owner.page.getByRole("heading", { name: "Pair this browser" }).waitFor();
  const status = await owner.page.evaluate(() => fetch("/api/v1/sessions").then((answer) => answer.status));
  assert.equal(status, 401);
  await guest.close();
  await owner.close();
});

test("a script that gets into the page can make no trusted address of its own", async () => {
  const visitor = await Visitor.paired(browser, world);
  for (const path of ["/", "/pair", "/approvals"]) {
    await visitor.page.goto(`${world.url}${path}`);
    await visitor.page.waitForFunction(() => document.querySelector("main") !== null);
    for (const name of ["capture", "default", "other"]) {
      const made = await visitor.page.evaluate((name) => {
        try {
          globalThis.trustedTypes.createPolicy(name, { createScriptURL: (url) => url });
          return true;
        } catch {
          return false;
        }
      }, name);
      assert.equal(made, false, `${name} at ${path}`);
    }
  }
  // The browser reports each attempt; nothing else may fail.
  const attempts = visitor.errors.splice(0).filter((error) => !/^console: Creating a TrustedTypePolicy named/.test(error));
  assert.deepEqual(attempts, []);
  await visitor.context.close();
});

test("a cookie alone changes nothing for a foreign page, and the page cannot be framed", async () => {
  const visitor = await Visitor.paired(browser, world);
  const [{ name, value }] = await visitor.context.cookies();
  for (const headers of [{}, { Origin: "https://evil.test", "X-Capture": "1" }, { Origin: "null", "X-Capture": "1" }, { Origin: world.url }]) {
    const answer = await fetch(`${world.url}/api/v1/sign-out`, {
      method: "POST",
      headers: { Cookie: `${name}=${value}`, "Content-Type": "application/json", ...headers },
      body: "{}",
    });
    assert.equal(answer.status, 403, JSON.stringify(headers));
  }
  const page = await fetch(`${world.url}/`);
  const policy = page.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"])
    assert.ok(policy.includes(part), part);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  assert.equal(page.headers.get("access-control-allow-origin"), null);
  await visitor.close();
});

test("a refusal from before the pairing does not keep the page offline", async () => {
  const visitor = await Visitor.make(browser, world);
  const page = await visitor.context.newPage();
  const pairing = page.waitForResponse((response) => response.url().endsWith("/api/v1/pair"));
  let asked = 0;
  await page.route("**/api/v1/me", async (route) => {
    asked += 1;
    // The second one is that of the stream, whose WebSocket was refused.
    if (asked !== 2) return route.continue();
    const refusal = await route.fetch();
    await pairing;
    await route.fulfill({ response: refusal });
  });
  await page.goto(`${world.url}/pair#${await world.code("control")}`);
  await page.locator(".connection-live").waitFor();
  await visitor.context.close();
});
