// The browser and the machine of a test file, started before its first test and closed after its last one.

import { after, before } from "node:test";
import { launch, Visitor } from "./browser.mjs";
import { World } from "./world.mjs";

export let browser;
export let world;
/** The paired profile shared by the tests of a file, if requested. */
export let visitor;

/** Called once by each file. `furnish` receives the machine before its server starts and returns options for the
 * server, if any; `prepare` runs once the server answers. */
export function setup({ furnish = async () => {}, prepare = async () => {}, shared = false } = {}) {
  before(async () => {
    browser = await launch();
    world = new World();
    await world.serve(...((await furnish(world)) ?? []));
    if (shared) visitor = await Visitor.paired(browser, world);
    await prepare();
  });
  after(async () => {
    try {
      await visitor?.close();
    } finally {
      await browser?.close();
      await world?.close();
    }
  });
}
