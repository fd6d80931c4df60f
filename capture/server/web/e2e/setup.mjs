// The browser and the machine of a test file: started before its first test, ended after its last one.

import { after, before } from "node:test";
import { launch } from "./browser.mjs";
import { World } from "./world.mjs";

export let browser;
export let world;

before(async () => {
  browser = await launch();
  world = new World();
  await world.serve();
});
after(async () => {
  await browser?.close();
  await world?.close();
});
