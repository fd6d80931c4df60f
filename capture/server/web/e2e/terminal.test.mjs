// The terminal of a run: read by everybody, typed into by those who may.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Visitor, launch } from "./browser.mjs";
import { World, eventually } from "./world.mjs";

let browser;
let world;
before(async () => {
  browser = await launch();
  world = new World();
  await world.serve();
});
after(async () => {
  await browser?.close();
  await world?.close();
});

async function run(name) {
  world.spawn(["run", "--detach", "--name", name, "--size", "80x24", "--", "sh"]).stdin.end();
  return eventually("the run is there", async () => {
    const { runs } = await world.api("/api/v1/runs");
    return runs.find((run) => run.name === name && run.state === "running" && run.size !== null);
  });
}
const screen = (page) => page.getByRole("region", { name: "Screen" });

test("typed keys reach the program, and nothing is typed before Type is pressed", async () => {
  const { id } = await run("typed");
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open(`/terminal/${id}`);
  await page.getByText(/80×24/).waitFor();
  await page.keyboard.type("echo early\n");
  await page.getByRole("button", { name: "Type", exact: true }).click();
  await page.keyboard.type("echo $((40+2))");
  await page.keyboard.press("Enter");
  await screen(page).getByText("42", { exact: true }).waitFor();
  assert.doesNotMatch(await screen(page).innerText(), /early/);
  await page.keyboard.press("Control+]");
  await page.getByRole("button", { name: "Type", exact: true }).waitFor();
  await page.keyboard.type("echo late\n");
  assert.doesNotMatch((await world.api(`/api/v1/runs/${id}/screen`)).lines.join("\n"), /late/);
  // Looking changed nothing.
  assert.deepEqual((await world.api(`/api/v1/runs/${id}`)).size, [24, 80]);
  await visitor.close();
});

test("a phone has a bar with the keys that its keyboard lacks", async () => {
  const { id } = await run("phone");
  await world.api(`/api/v1/runs/${id}/input`, { text: "sleep 1000\n" });
  const phone = await Visitor.paired(browser, world, "control", { phone: true });
  const page = await phone.open(`/terminal/${id}`);
  await screen(page).getByText("sleep 1000").waitFor();
  const bar = page.getByRole("toolbar", { name: "Keys" });
  for (const name of ["Esc", "Shift Tab", "Left", "Up", "Down", "Right", "Enter", "Control C"]) assert.ok(await bar.getByRole("button", { name, exact: true }).count(), name);
  await bar.getByRole("button", { name: "Control C" }).tap();
  await page.getByRole("button", { name: "Type", exact: true }).tap();
  await page.keyboard.type("echo $((20+3))");
  await bar.getByRole("button", { name: "Enter", exact: true }).tap();
  await screen(page).getByText("23", { exact: true }).waitFor();
  await phone.close();
});

test("a device for reading sees the terminal and types nothing", async () => {
  const { id } = await run("read");
  await world.api(`/api/v1/runs/${id}/input`, { text: "echo $((50+5))\n" });
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open(`/terminal/${id}`);
  await screen(page).getByText("55", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Type" }).count(), 0);
  assert.equal(await page.getByRole("toolbar", { name: "Keys" }).count(), 0);
  await visitor.close();
});
