// The terminal of a run: read by everybody, typed into by those who may.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

setup();

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

test("colours are shown, and lines that scrolled off are kept by the host", async () => {
  const { id } = await run("scrolled");
  await world.api(`/api/v1/runs/${id}/input`, { text: "seq 1 90; printf '\\033[31mwarm\\033[0m\\n'\n" });
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open(`/terminal/${id}`);
  await screen(page).locator("span.f1", { hasText: "warm" }).waitFor();
  assert.equal(await screen(page).getByText("7", { exact: true }).count(), 0);
  await page.getByRole("button", { name: "Show earlier lines" }).click();
  await screen(page).getByText("7", { exact: true }).waitFor();
  await world.api(`/api/v1/runs/${id}/input`, { text: "seq 200 240\n" });
  await screen(page).getByText("240", { exact: true }).waitFor();
  // What scrolled off meanwhile is there too, once.
  await eventually("no line is missing or doubled", async () => {
    const lines = (await screen(page).locator(".terminal-line").allInnerTexts()).map((line) => line.trim());
    const numbers = lines.filter((line) => /^\d+$/.test(line)).map(Number);
    return numbers.join() === [...Array.from({ length: 90 }, (_, index) => index + 1), ...Array.from({ length: 41 }, (_, index) => index + 200)].join();
  });
  await visitor.close();
});

test("a view takes the size visibly, one at a time, and gives it back", async () => {
  const { id } = await run("sized");
  const size = async () => (await world.api(`/api/v1/runs/${id}`)).size.join("×");
  const visitor = await Visitor.paired(browser, world, "control", { viewport: { width: 1000, height: 700 } });
  const other = await Visitor.paired(browser, world, "control", { userAgent: "Mozilla/5.0 (iPhone) Version/19.0 Safari/604.1" });
  const [page, second] = [await visitor.open(`/terminal/${id}`), await other.open(`/terminal/${id}`)];
  await second.getByRole("button", { name: "Take the size" }).waitFor();
  assert.equal(await size(), "24×80");
  await page.getByRole("button", { name: "Take the size" }).click();
  await eventually("the terminal has another size", async () => (await size()) !== "24×80");
  await second.getByRole("button", { name: "Take the size" }).click();
  await second.getByText(/has the size/).waitFor();
  await page.getByRole("button", { name: "Give the size back" }).click();
  await page.getByRole("button", { name: "Take the size" }).waitFor();
  await second.getByRole("button", { name: "Take the size" }).click();
  await second.getByRole("button", { name: "Give the size back" }).waitFor();
  await visitor.close();
  await other.close();
});
