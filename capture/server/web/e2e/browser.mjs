// A browser for the tests. Every page is monitored: an error, a report of the content security policy, or a request to
// anything but the server fails the test that caused it.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** A folder with a bundle to use instead of the program's, to test the page without compiling the program. */
const BUNDLE = process.env.CAPTURE_WEB_DIST;
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** Starts the browser. */
export const launch = () => chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

/** A separate browser profile, which acts as a device. */
export class Visitor {
  constructor(world, context, errors) {
    this.world = world;
    this.context = context;
    this.errors = errors;
  }

  /** A profile that is not paired. */
  static async make(browser, world, { phone = false, ...options } = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...(phone ? PHONE : {}), ...options });
    const visitor = new Visitor(world, context, []);
    context.setDefaultTimeout(15_000);
    if (BUNDLE !== undefined)
      await context.route(/\/assets\/app\.(js|css)(\?|$)/, (route) =>
        route.fulfill({ path: `${BUNDLE}${new URL(route.request().url()).pathname.replace("/assets", "")}` }),
      );
    context.on("page", (page) => visitor.watch(page));
    return visitor;
  }

  /** A paired profile, on the first page. */
  static async paired(browser, world, scope = "control", options = {}) {
    const visitor = await Visitor.make(browser, world, options);
    const page = await visitor.open(`/pair#${await world.code(scope)}`);
    await page.waitForURL(`${world.url}/`);
    visitor.page = page;
    return visitor;
  }

  watch(page) {
    page.on("pageerror", (error) => this.errors.push(`error: ${error.stack ?? error}`));
    page.on("console", (message) => {
      const text = message.text();
      // Some tests break connections on purpose, so the browser's own messages about that are ignored.
      if (message.type() === "error" && !/Failed to load resource|net::ERR|WebSocket connection/.test(text)) this.errors.push(`console: ${text}`);
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(this.world.url) && !url.startsWith("data:")) this.errors.push(`request: ${url}`);
      if (/token|bearer/i.test(url)) this.errors.push(`a token in an address: ${url}`);
    });
    page.on("dialog", (dialog) => {
      this.errors.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** Opens another page. */
  async open(path) {
    const page = await this.context.newPage();
    await page.addInitScript(() => {
      globalThis.reports = [];
      document.addEventListener("securitypolicyviolation", (event) => globalThis.reports.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    await page.goto(this.world.url + path);
    return page;
  }

  /** Closes it; fails on any error that no test expected. */
  async close() {
    for (const page of this.context.pages()) {
      const reports = await page.evaluate(() => globalThis.reports ?? []).catch(() => []);
      this.errors.push(...reports.map((report) => `policy: ${report}`));
    }
    await this.context.close();
    assert.deepEqual(this.errors, []);
  }
}

/** The card of a permission request. */
export const cardOf = (page, approval) => page.locator(`[data-approval="${approval.id}"]`);

/** Waits until a button of a card is active; it is inactive for a moment after it appears. */
export async function ready(button) {
  const decides = button.and(button.page().locator("[aria-disabled=false]"));
  // A request is loaded once it is in view, and requests above it may push it out again when they load.
  for (let tries = 0; tries < 30; tries += 1) {
    await button.evaluate((element) => element.scrollIntoView({ block: "center" }));
    if (
      await decides.waitFor({ timeout: 500 }).then(
        () => true,
        () => false,
      )
    )
      return;
  }
  await decides.waitFor();
}
