// The browser and the machine of a test file: started before its first test, ended after its last one.

import { after, before } from "node:test";
import { launch, Visitor } from "./browser.mjs";
import { World } from "./world.mjs";

export let browser;
export let world;
/** The paired profile that the tests of a file share, where it asked for one. */
export let visitor;

/** Called once by each file. `furnish` gets the machine before its server is started, and answers the options of that, if
 * any; `prepare` runs when it answers. */
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
