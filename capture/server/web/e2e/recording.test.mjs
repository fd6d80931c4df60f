// A terminal's recording, played in the terminal view.

import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "./axe.mjs";
import { Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

const SCRIPT = "printf '\\033[31mfirst\\033[0m\\n'; sleep 0.4; echo second; sleep 0.4; echo third; sleep 0.4";
// When this text was printed, ms from the beginning.
async function printed(text) {
  const { frames } = await world.api(`/api/v1/runs/${run.id}/recording/frames`);
  return frames.find((frame) => JSON.stringify(frame).includes(text)).at_ms;
}

const screen = (page) => page.getByRole("region", { name: "Screen" });

let run;
setup({ prepare });
async function prepare() {
  world.spawn(["run", "--detach", "--name", "recorded", "--size", "80x24", "--record", "--", "sh", "-c", SCRIPT]).stdin.end();
  run = await eventually("the run ended", async () => {
    const { runs } = await world.api("/api/v1/runs");
    return runs.find((run) => run.name === "recorded" && run.state === "exited");
  });
}

test("a recording is found from its terminal and its session, and plays to its end", async () => {
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open(`/terminal/${run.id}`);
  await page.getByRole("link", { name: "Recording" }).click();
  await page.waitForURL(`${world.url}/recordings/${run.id}`);
  await check(page, "recording");
  await page.getByRole("button", { name: "Play" }).click();
  await screen(page).locator("span.f1", { hasText: "first" }).waitFor();
  await screen(page).getByText("third", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Play" }).waitFor();
  const [at, duration] = (await page.locator(".player-time").innerText()).split(" / ");
  assert.equal(at, duration);
  await visitor.close();
});

test("a session leads to the recording of its run, and a moment of it to the screen of that moment", async () => {
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open(`/s/${run.session_id}`);
  await page.getByRole("link", { name: "Recording" }).waitFor();
  await page.getByRole("slider", { name: "Moment of the timeline" }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("link", { name: "Show the screen" }).click();
  await page.waitForURL(/recordings.*[?]t=/);
  await screen(page).getByText("first", { exact: true }).waitFor();
  await visitor.close();
});

test("any moment of a recording is shown: by the slider, by keys, by a link", async () => {
  const visitor = await Visitor.paired(browser, world, "read", { phone: true });
  const page = await visitor.open(`/recordings/${run.id}?t=${(await printed("third")) / 1000 + 0.1}`);
  await screen(page).getByText("third", { exact: true }).waitFor();
  await check(page, "recording on a phone");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
  const slider = page.getByRole("slider", { name: "Time of the recording" });
  // A position of the slider between the second line and the third.
  await slider.fill(String(Math.ceil((await printed("second")) / 100) * 100));
  await screen(page).getByText("third", { exact: true }).waitFor({ state: "detached" });
  await screen(page).getByText("second", { exact: true }).waitFor();
  await slider.focus();
  await page.keyboard.press("Home");
  await screen(page).getByText("second", { exact: true }).waitFor({ state: "detached" });
  await page.keyboard.press("End");
  await screen(page).getByText("third", { exact: true }).waitFor();
  // The address contains the time.
  await page.waitForURL(/[?]t=\d/);
  await page.reload();
  await screen(page).getByText("third", { exact: true }).waitFor();
  await page.keyboard.press("Home");
  await page.getByRole("combobox", { name: "Speed" }).selectOption("8");
  await page.locator("h1").click();
  await page.keyboard.press(" ");
  await screen(page).getByText("third", { exact: true }).waitFor();
  await visitor.close();
});

test("a run without a recording offers none, and the address of one says so", async () => {
  world.spawn(["run", "--detach", "--name", "unrecorded", "--", "sleep", "1000"]).stdin.end();
  const { id } = await eventually("the run is there", async () => (await world.api("/api/v1/runs")).runs.find((run) => run.name === "unrecorded"));
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open(`/terminal/${id}`);
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Recording" }).count(), 0);
  await page.goto(`${world.url}/recordings/${id}`);
  await page.locator(".failed").waitFor();
  await visitor.close();
});
