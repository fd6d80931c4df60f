// A run's terminal: all devices can view it, and devices with the right scope can type into it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "./axe.mjs";
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
  // Viewing changed nothing.
  assert.deepEqual((await world.api(`/api/v1/runs/${id}`)).size, [24, 80]);
  await visitor.close();
});

test("a phone has a bar with the keys that its keyboard lacks", async () => {
  const { id } = await run("phone");
  await world.api(`/api/v1/runs/${id}/input`, { text: "sleep 1000\n" });
  const phone = await Visitor.paired(browser, world, "control", { phone: true });
  const page = await phone.open(`/terminal/${id}`);
  await screen(page).getByText("sleep 1000").waitFor();
  for (const name of ["Type", "Larger text", "Take the size"]) {
    const { x, width } = await page.getByRole("button", { name, exact: true }).boundingBox();
    assert.ok(x >= 0 && x + width <= 390, `${name} is not in view`);
  }
  const bar = page.getByRole("toolbar", { name: "Keys" });
  for (const name of ["Esc", "Shift Tab", "Left", "Up", "Down", "Right", "Enter", "Control C"])
    assert.ok(await bar.getByRole("button", { name, exact: true }).count(), name);
  await bar.getByRole("button", { name: "Control C" }).tap();
  await page.getByRole("button", { name: "Type", exact: true }).tap();
  await page.keyboard.type("echo $((20+3))");
  await bar.getByRole("button", { name: "Enter", exact: true }).tap();
  await screen(page).getByText("23", { exact: true }).waitFor();
  // Control combined with a letter applies to the next letter only.
  await page.keyboard.type("sleep 2000");
  await bar.getByRole("button", { name: "Enter", exact: true }).tap();
  const control = bar.getByRole("button", { name: /^Ctrl, with/ });
  await control.tap();
  assert.equal(await control.getAttribute("aria-pressed"), "true");
  await page.keyboard.insertText("c");
  assert.equal(await control.getAttribute("aria-pressed"), "false");
  await page.keyboard.insertText("echo c$((30+4))c");
  await bar.getByRole("button", { name: "Enter", exact: true }).tap();
  await screen(page).getByText("c34c", { exact: true }).waitFor();
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
  // Lines that scrolled off in the meantime appear exactly once.
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
  // Typing continues after the button is pressed: the button does not keep the focus.
  await second.getByRole("button", { name: "Give the size back" }).click();
  await second.getByRole("button", { name: "Type", exact: true }).click();
  for (const [name, then] of [
    ["Take the size", "Give the size back"],
    ["Give the size back", "Take the size"],
    ["Larger text", "Fit"],
  ]) {
    await second.getByRole("button", { name }).click();
    await second.keyboard.type(`echo after-${name.split(" ")[0]}-$((1+1))\n`);
    await screen(second)
      .getByText(`after-${name.split(" ")[0]}-2`, { exact: true })
      .waitFor();
    await second.getByRole("button", { name: then }).waitFor();
  }
  await visitor.close();
  await other.close();
});

/** The lowest contrast between a character and its background, and the character. */
const contrastOf = (page) =>
  page.evaluate(() => {
    const luminance = (colour) => {
      const part = (value) => ((value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * part(colour[0]) + 0.7152 * part(colour[1]) + 0.0722 * part(colour[2]);
    };
    const rgb = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
    const walker = document.createTreeWalker(document.querySelector(".terminal-screen"), NodeFilter.SHOW_TEXT);
    let least = { ratio: 21, text: "", characters: 0 };
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      if (node.data.trim() === "") continue;
      let element = node.parentElement;
      const front = rgb(getComputedStyle(element).color);
      let back = null;
      for (; element !== null && back === null; element = element.parentElement) {
        const colour = rgb(getComputedStyle(element).backgroundColor);
        if (colour.length === 3 || colour[3] > 0.5) back = colour;
      }
      const [a, b] = [luminance(front), luminance(back ?? [255, 255, 255])];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      least = ratio < least.ratio ? { ...least, ratio, text: node.data.trim() } : least;
      least.characters += node.data.trim().length;
    }
    return least;
  });

/** Every colour of the palette and some others, as foreground and background, dim and inverse. */
const COLOURS =
  "for m in '' '2;' '7;' '2;7;'; do for c in $(seq 0 7); do printf \"\\033[$m$((30+c))mab\\033[0m\\033[$m$((90+c))mcd\\033[0m\\033[$m$((40+c))mef\\033[0m\\033[$m$((100+c))mgh\\033[0m\\033[$m\\063\\070;5;$((16+c*30))mij\\033[0m\\033[${m}48;2;$((c*36));$((c*30));90mkl\\033[0m\"; done; echo; done";

test("every character of a terminal can be read, in the light theme and in the dark one", async () => {
  const { id } = await run("colours");
  await world.api(`/api/v1/runs/${id}/input`, { text: `clear; ${COLOURS}; echo drawn\n` });
  for (const colorScheme of ["light", "dark"]) {
    const visitor = await Visitor.paired(browser, world, "control", { colorScheme });
    const page = await visitor.open(`/terminal/${id}`);
    await screen(page).getByText("drawn", { exact: true }).waitFor();
    const { ratio, text, characters } = await contrastOf(page);
    assert.ok(ratio >= 4.5 && characters > 300, `${colorScheme}: ${text} has ${ratio}, of ${characters}`);
    await check(page, `terminal, ${colorScheme}`);
    await visitor.close();
  }
});

/** The position of the cursor relative to the pane: in view, or its distance, px. */
const cursorIn = (page) =>
  page.evaluate(() => {
    const pane = document.querySelector(".terminal-pane").getBoundingClientRect();
    const cursor = document.querySelector(".terminal-pane .cursor").getBoundingClientRect();
    return cursor.top >= pane.top && cursor.bottom <= pane.bottom ? "in view" : `${cursor.top} in ${pane.top}–${pane.bottom}`;
  });

test("the cursor stays in view until somebody scrolls up, and there is a way back", async () => {
  const { id } = await run("follow");
  const visitor = await Visitor.paired(browser, world, "control", { viewport: { width: 1280, height: 420 } });
  const page = await visitor.open(`/terminal/${id}`);
  await page.getByText(/80×24/).waitFor();
  await page.getByRole("button", { name: "Type", exact: true }).click();
  await page.keyboard.type("seq 1 300\n");
  await screen(page).getByText("300", { exact: true }).waitFor();
  await eventually("the cursor is in view", async () => (await cursorIn(page)) === "in view");
  await page.getByRole("button", { name: "Show earlier lines" }).click();
  // The lines just before the visible ones, not the oldest.
  await eventually("the lines before are in view", async () => {
    const seen = await page.evaluate(() => {
      const pane = document.querySelector(".terminal-pane").getBoundingClientRect();
      return [...document.querySelectorAll(".terminal-line")]
        .filter((line) => line.getBoundingClientRect().top >= pane.top && line.getBoundingClientRect().bottom <= pane.bottom)
        .map((line) => Number(line.textContent.trim()));
    });
    return seen.length > 5 && seen[0] > 230 && seen.at(-1) < 285;
  });
  const top = () => page.evaluate(() => document.querySelector(".terminal-pane").scrollTop);
  const before = await top();
  await world.api(`/api/v1/runs/${id}/input`, { text: "echo more\n" });
  await screen(page).getByText("more", { exact: true }).waitFor();
  assert.equal(await top(), before, "output does not move what is read");
  await page.getByRole("button", { name: "Latest" }).click();
  await eventually("the cursor is in view again", async () => (await cursorIn(page)) === "in view");
  await page.getByRole("button", { name: "Latest" }).waitFor({ state: "detached" });
  await page.mouse.move(600, 300);
  await page.mouse.wheel(0, -2_000);
  await page.getByRole("button", { name: "Latest" }).waitFor();
  await page.keyboard.type("echo typed\n");
  await screen(page).getByText("typed", { exact: true }).waitFor();
  await eventually("typing goes back to the cursor", async () => (await cursorIn(page)) === "in view");
  await visitor.close();
});

test("wide characters stay in their columns", async () => {
  const { id } = await run("wide");
  await world.api(`/api/v1/runs/${id}/input`, {
    text: "clear; printf '|\\346\\227\\245\\346\\234\\254\\350\\252\\236|\\n|abcdef|\\n|\\360\\237\\232\\200\\360\\237\\232\\200\\360\\237\\232\\200|\\n|\\342\\235\\257\\342\\217\\272\\342\\234\\273---|\\n'; echo end\n",
  });
  const visitor = await Visitor.paired(browser, world, "read");
  const page = await visitor.open(`/terminal/${id}`);
  await screen(page).getByText("end", { exact: true }).waitFor();
  const bars = await page.evaluate(() =>
    [...document.querySelectorAll(".terminal-line")]
      .filter((line) => /^\|.*\|\s*$/.test(line.textContent))
      .map((line) => {
        const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
        let right = 0;
        for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
          const at = node.data.lastIndexOf("|");
          if (at < 0) continue;
          const range = document.createRange();
          range.setStart(node, at);
          range.setEnd(node, at + 1);
          right = range.getBoundingClientRect().right;
        }
        return right;
      }),
  );
  assert.equal(bars.length, 4);
  assert.ok(Math.max(...bars) - Math.min(...bars) < 1, bars.join());
  await visitor.close();
});

test("a terminal comes back by itself after the server was away: live, coloured, with its lines and its size", async () => {
  const { id } = await run("back");
  const visitor = await Visitor.paired(browser, world, "control", { viewport: { width: 1000, height: 700 } });
  const page = await visitor.open(`/terminal/${id}`);
  let sockets = 0;
  page.on("websocket", () => (sockets += 1));
  await page.getByText(/80×24/).waitFor();
  await page.getByRole("button", { name: "Take the size" }).click();
  await page.getByRole("button", { name: "Give the size back" }).waitFor();
  await page.getByRole("button", { name: "Type", exact: true }).click();
  await page.keyboard.type("seq 1 90; printf '\\033[31mwarm\\033[0m\\n'\n");
  await screen(page).locator("span.f1", { hasText: "warm" }).waitFor();
  const size = (await world.api(`/api/v1/runs/${id}`)).size.join();
  const port = new URL(world.url).port;
  await world.kill();
  await page.getByText(/^Not connected\. This is the screen of/).waitFor();
  await screen(page).locator("span.f1", { hasText: "warm" }).waitFor();
  assert.equal(await page.getByRole("alert").filter({ hasText: "cannot be reached" }).count(), 0);
  await eventually("it tried several times", () => sockets >= 4);
  await world.serve("--listen", `127.0.0.1:${port}`);
  await page.locator(".terminal-head .chip", { hasText: /^live$/ }).waitFor();
  await screen(page).locator("span.f1", { hasText: "warm" }).waitFor();
  await page.getByRole("button", { name: "Give the size back" }).waitFor();
  await page.keyboard.type("echo again\n");
  await screen(page).getByText("again", { exact: true }).waitFor();
  assert.equal((await world.api(`/api/v1/runs/${id}`)).size.join(), size);
  await page.getByRole("button", { name: "Show earlier lines" }).click();
  await screen(page).getByText("7", { exact: true }).waitFor();
  await visitor.close();
});

test("a terminal whose connection leads nowhere is not shown as live", async () => {
  const { id } = await run("nowhere");
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.context.newPage();
  let isDead = false;
  let sockets = 0;
  await page.routeWebSocket(/\/terminal$/, (socket) => {
    sockets += 1;
    const isFirst = sockets === 1;
    const server = socket.connectToServer();
    socket.onMessage((message) => (isFirst && isDead) || server.send(message));
    server.onMessage((message) => (isFirst && isDead) || socket.send(message));
  });
  await page.goto(`${world.url}/terminal/${id}`);
  await page.getByText(/80×24/).waitFor();
  await page.getByRole("button", { name: "Type", exact: true }).click();
  isDead = true;
  await page.keyboard.type("x");
  const away = page.getByText(/^Not connected\. This is the screen of/);
  await page
    .getByText(/whether the input arrived is not known/)
    .first()
    .waitFor();
  const live = page.locator(".terminal-head .chip", { hasText: /^live$/ });
  await eventually("it is made again", () => sockets >= 2);
  await live.waitFor();
  await page.keyboard.type("echo $((60+6))\n");
  await screen(page).getByText("66", { exact: true }).waitFor();
  // The page itself detects that the network is gone.
  await visitor.context.setOffline(true);
  await away.waitFor();
  await visitor.context.setOffline(false);
  await live.waitFor();
  await visitor.close();
});
