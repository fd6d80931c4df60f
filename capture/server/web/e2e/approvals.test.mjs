// Deciding: the agent receives the decision that was pressed first, once.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { cardOf, ready, Visitor } from "./browser.mjs";
import { browser, setup, visitor, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

let agent;
let count = 0;
setup({ shared: true });
beforeEach(async () => {
  count += 1;
  agent = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000001${String(count).padStart(2, "0")}`, `p${count}`);
  await agent.begin("Do it");
  await visitor.page.goto(`${world.url}/approvals`);
});

const decision = (said) => said.hookSpecificOutput.decision;
const allow = (card) => card.locator("button.allow");
const deny = (card) => card.getByRole("button", { name: /^(Deny|Decline)/ });

test("a command is shown whole and allowed once", async () => {
  const command = `npm run build -- ${"--option value ".repeat(20)}&& echo the-end`;
  const told = agent.ask("Bash", { command });
  const card = cardOf(visitor.page, await agent.pending());
  await card.getByText("the-end").waitFor();
  assert.equal((await card.locator("pre.exact").innerText()).trim(), command);
  await ready(allow(card));
  await allow(card).click();
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await card.getByText(/^Allowed/).waitFor();
});

test("the length of a command is its own, without what the agent says about it", async () => {
  const command = `touch ${"x".repeat(420)}`;
  const told = agent.ask("Bash", { command, description: `As you asked.\n${"Really. ".repeat(20)}` });
  const card = cardOf(visitor.page, await agent.pending());
  assert.equal(await card.locator(".census").innerText(), `1 line · ${command.length} characters`);
  await ready(deny(card));
  await deny(card).click();
  await told;
  const short = agent.ask("Bash", { command: "touch y", description: "Really. ".repeat(80) });
  const second = cardOf(visitor.page, await agent.pending());
  await ready(deny(second));
  assert.equal(await second.locator(".census").count(), 0);
  await deny(second).click();
  await short;
});

test("a request of any length is shown whole, or says how much of it is missing and cannot be allowed", async () => {
  const long = (bytes) => `echo start\n${"x=1\n".repeat(bytes / 4)}rm -rf ~ # the-end`;
  for (const [tool, field] of [
    ["Bash", "command"],
    ["Write", "content"],
  ]) {
    // On a busy machine, the browser needs more than the usual minute for 30,000 lines.
    const whole = agent.ask(tool, { file_path: "/tmp/run.sh", [field]: long(120_000) }, "300");
    let card = cardOf(visitor.page, await agent.pending());
    if (tool === "Write") {
      await card.getByText(/^400 of 30,\d{3} lines are shown/).waitFor();
      assert.match(await allow(card).innerText(), /^Hold/, "what is not on the card takes longer to allow");
      await card.getByRole("button", { name: /^Show all/ }).click();
      await card.getByText("the-end").first().waitFor();
      assert.match(await allow(card).innerText(), /^Hold/, "its box shows a part of the lines at a time");
    }
    await card.getByText("the-end").first().waitFor();
    assert.equal(await card.getByText(/Not all of it is shown/).count(), 0);
    await ready(deny(card));
    await deny(card).click();
    assert.equal(decision(await whole).behavior, "deny");

    const cut = agent.ask(tool, { file_path: "/tmp/run.sh", [field]: long(900_000) });
    const pending = await agent.pending((approval) => approval.excerpt != null);
    card = cardOf(visitor.page, pending);
    await card
      .getByText(/Not all of it is shown: 65,5\d\d of \d{3},\d{3} bytes/)
      .first()
      .waitFor();
    await card.getByText("the-end").first().waitFor();
    assert.equal(await cut, null, "the agent asks its user itself");
    await allow(card).waitFor({ state: "detached" });
    await assert.rejects(world.api(`/api/v1/approvals/${pending.id}/decision`, { decision: "allow" }), /409/);
  }
});

test("a command whose end may be out of sight has to be held", async () => {
  const narrow = { width: 390, height: 480 };
  const asked = [
    ["Bash", { command: `cargo test\n${"\n".repeat(60)}touch end` }],
    ["Bash", { command: `echo ${"x".repeat(600)}; touch end` }],
    // The agent's description pushes the command away from the button.
    ["Bash", { command: "touch end", description: "As you asked. ".repeat(700) }],
    // Few lines and characters, but more rows than a phone shows.
    ["Bash", { command: `cargo test\n${"echo one two three four five six\n".repeat(10)}touch end` }, narrow],
    // Columns that extend beyond the box.
    ["ExitPlanMode", { plan: `1. read\n\n| ${"a long head of a column ".repeat(9)} | do |\n|---|---|\n| x | touch end |` }, narrow],
    ["Write", { file_path: "a.mjs", content: `${`// ${"long words ".repeat(9)}\n`.repeat(17)}import('./end.mjs')` }, narrow],
  ];
  const size = visitor.page.viewportSize();
  for (const [tool, input, viewport] of asked) {
    await visitor.page.setViewportSize(viewport ?? size);
    const told = agent.ask(tool, input);
    const card = cardOf(visitor.page, await agent.pending());
    await ready(allow(card));
    assert.match(await allow(card).innerText(), /^Hold/);
    await allow(card).click();
    await ready(deny(card));
    await deny(card).click();
    assert.equal(decision(await told).behavior, "deny");
  }
  await visitor.page.setViewportSize(size);
});

test("the words of a question are on the screen, whatever its header, and widen nothing", async () => {
  const size = visitor.page.viewportSize();
  await visitor.page.setViewportSize({ width: 390, height: 844 });
  const header = "Shall I list the files of the project, so that you can see them? Please choose".repeat(3);
  const told = agent.ask("AskUserQuestion", {
    questions: [{ question: "Delete the production database now?", header, options: [{ label: "Yes" }, { label: "No" }] }],
  });
  const card = cardOf(visitor.page, await agent.pending());
  const question = await card.getByText("Delete the production database now?").boundingBox();
  assert.ok(question.x >= 0 && question.x + question.width <= 390 && question.width > 150, JSON.stringify(question));
  assert.ok(await visitor.page.evaluate(() => document.documentElement.scrollWidth <= 390));
  await ready(deny(card));
  await deny(card).click();
  await told;
  await visitor.page.setViewportSize(size);
});

test("the decisions of a request are in view in the page of its session, however long it is", async () => {
  const { page } = visitor;
  const size = page.viewportSize();
  await page.setViewportSize({ width: 1280, height: 800 });
  const options = ["first", "second", "third", "fourth", "fifth"].map((label) => ({ label, description: `The ${label} of them.` }));
  const asked = [
    ["AskUserQuestion", { questions: [1, 2].map((number) => ({ question: `What about part ${number}?`, options })) }, "Send the answer"],
    ["Bash", { command: "touch end", description: "As you asked. ".repeat(60) }, "Hold: allow once"],
    ["Write", { file_path: `${agent.cwd}/a.txt`, content: "one line\n".repeat(60) }, "Hold: allow once"],
  ];
  for (const [tool, input, words] of asked) {
    const told = agent.ask(tool, input);
    const approval = await agent.pending();
    await page.goto(`${world.url}/s/${approval.session_id}`);
    const card = cardOf(page, approval);
    await eventually("the request is read", async () => (await allow(card).innerText()) === words);
    for (const top of [0, 100_000]) {
      await card.evaluate((element, top) => element.scrollTo(0, top), top);
      for (const button of [allow(card), deny(card)])
        assert.ok(
          await button.evaluate((element) => {
            const { left, top, bottom } = element.getBoundingClientRect();
            return bottom <= innerHeight && [top + 2, bottom - 2].every((y) => element.contains(document.elementFromPoint(left + 9, y)));
          }),
          `${tool}, scrolled to ${top}`,
        );
    }
    assert.ok(await card.evaluate((element) => element.hasAttribute("data-scrolls")), "it shows that there is more");
    await eventually("it can be decided", async () => (await deny(card).getAttribute("aria-disabled")) === "false");
    await deny(card).click();
    assert.equal(decision(await told).behavior, "deny");
  }
  await page.setViewportSize(size);
});

test("a denial carries its reason", async () => {
  const told = agent.ask("Bash", { command: "npm install left-pad" });
  const card = cardOf(visitor.page, await agent.pending());
  await card.getByRole("button", { name: "Reason…" }).click();
  await card.getByLabel(/Reason/).fill("Use pnpm.");
  await ready(deny(card));
  await deny(card).click();
  const { behavior, message } = decision(await told);
  assert.equal(behavior, "deny");
  assert.match(message, /Use pnpm\./);
  await card.getByText(/^Denied/).waitFor();
});

test("a press in the first moment decides nothing", async () => {
  const told = agent.ask("Bash", { command: "touch early" });
  const approval = await agent.pending();
  // The page itself presses the button, in the task in which it appears.
  await visitor.page.evaluate((id) => {
    const press = () =>
      document.querySelectorAll(`[data-approval="${id}"] button.allow, [data-approval="${id}"] .decide-deny button`).forEach((button) => button.click());
    globalThis.pressed = 0;
    new MutationObserver((_, observer) => {
      if (document.querySelector(`[data-approval="${id}"] button.allow`) === null) return;
      globalThis.pressed += 1;
      press();
      observer.disconnect();
    }).observe(document.body, { childList: true, subtree: true });
  }, approval.id);
  await visitor.page.goto(`${world.url}/`);
  await visitor.page.evaluate((id) => {
    globalThis.pressed = 0;
    new MutationObserver((_, observer) => {
      const buttons = document.querySelectorAll(`[data-approval="${id}"] button.allow, [data-approval="${id}"] .decide-deny .danger`);
      if (buttons.length === 0) return;
      observer.disconnect();
      for (const button of buttons) button.click();
      globalThis.pressed = buttons.length;
    }).observe(document.body, { childList: true, subtree: true });
  }, approval.id);
  await visitor.page
    .getByRole("link", { name: /Approvals/ })
    .first()
    .click();
  await visitor.page.waitForFunction(() => globalThis.pressed === 2);
  const card = cardOf(visitor.page, approval);
  await ready(allow(card));
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "pending");
  await deny(card).click();
  assert.equal(decision(await told).behavior, "deny");
});

test("what could do harm has to be held", async () => {
  const told = agent.ask("Bash", { command: "rm -rf ./build" });
  const approval = await agent.pending();
  const card = cardOf(visitor.page, approval);
  await card.getByText("Risky:").waitFor();
  const button = card.getByRole("button", { name: /Hold/ });
  await ready(button);
  await button.click();
  await card.focus();
  await visitor.page.keyboard.press("a");
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "pending");
  await button.hover();
  for (const colorScheme of ["light", "dark"]) {
    await visitor.page.emulateMedia({ colorScheme });
    const [red, green, blue] = (await button.evaluate((element) => getComputedStyle(element).backgroundColor)).match(/\d+/g).map(Number);
    assert.ok(red > green + 60 && red > blue + 60, `under the pointer it is not red: ${red} ${green} ${blue}`);
  }
  await visitor.page.emulateMedia({ colorScheme: null });
  await visitor.page.mouse.down();
  await card.getByText(/^Allowed/).waitFor();
  await visitor.page.mouse.up();
  assert.deepEqual(decision(await told), { behavior: "allow" });
});

test("a decided card keeps what was decided", async () => {
  const told = agent.ask("Bash", { command: "touch kept" });
  const card = cardOf(visitor.page, await agent.pending());
  await ready(allow(card));
  await allow(card).click();
  await told;
  await card.getByText(/^Allowed by a person on this device at \d\d:\d\d$/).waitFor();
  await card.getByText("touch kept").waitFor();
  assert.ok((await card.boundingBox()).height < 60, "it is one line");
  await card.getByRole("button", { name: "Show the request" }).click();
  assert.equal((await card.locator("pre.exact").innerText()).trim(), "touch kept");
  assert.match(await card.locator(".card-wait").innerText(), /^waited \d+ s$/);
  assert.equal(await card.locator(".card-wait time").count(), 0, "its clock has stopped");
  await card.getByRole("button", { name: "Hide the request" }).click();
  assert.ok((await card.boundingBox()).height < 60);
});

/** Whether the focus is on a card or on a card's decision buttons. */
const focused = (page) =>
  page.evaluate(() => ({
    card: document.activeElement.dataset.approval ?? null,
    ring: getComputedStyle(document.activeElement).outlineStyle,
    button: document.activeElement.innerText,
  }));

test("keys select requests one after another, and decide them", async () => {
  const { page } = visitor;
  const second = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000004${String(count).padStart(2, "0")}`, `p${count}`);
  await second.begin("Do it too");
  const first = agent.ask("Bash", { command: "touch first" });
  const { id } = await agent.pending();
  const other = second.ask("Bash", { command: "rm -rf ./second" });
  const { id: risky } = await second.pending();
  await cardOf(page, { id: risky }).waitFor();
  for (const [next, back] of [
    ["j", "k"],
    ["ArrowDown", "ArrowUp"],
    ["]", "["],
  ]) {
    await page.reload();
    await ready(allow(cardOf(page, { id: risky })));
    // Other requests may come before it.
    const before = (await page.locator("[data-approval]:not(.card-done)").evaluateAll((cards) => cards.map((card) => card.dataset.approval))).indexOf(id);
    for (let step = 0; step <= before; step += 1) await page.keyboard.press(next);
    assert.deepEqual([(await focused(page)).card, (await focused(page)).ring], [id, "solid"], next);
    await page.keyboard.press(next);
    assert.equal((await focused(page)).card, risky, next);
    await page.keyboard.press(back);
    assert.equal((await focused(page)).card, id, back);
  }
  // Only a few steps lead from a selected request to its buttons.
  const steps = [];
  while (!/^Allow once/.test(steps.at(-1) ?? "") && steps.length < 12) {
    await page.keyboard.press("Tab");
    steps.push((await focused(page)).button);
  }
  assert.ok(steps.length <= 7, steps.join(" > "));
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  const selected = cardOf(page, { id });
  await selected.focus();
  await page.keyboard.press("a");
  assert.deepEqual(decision(await first), { behavior: "allow" });
  await selected.getByText(/^Allowed/).waitFor();
  // Decided requests are skipped.
  await page.keyboard.press("j");
  assert.equal((await focused(page)).card, risky);
  const card = cardOf(page, { id: risky });
  await ready(allow(card));
  await page.keyboard.down("a");
  await holding(card).waitFor();
  await page.keyboard.up("a");
  await stays(page, risky, "a risky one is held");
  await page.keyboard.down("a");
  await card.getByText(/^Allowed/).waitFor();
  await page.keyboard.up("a");
  assert.deepEqual(decision(await other), { behavior: "allow" });
});

const holding = (card) => card.locator("button.holding");

/** Waits for longer than a decision must be held, and checks that none was made. */
async function stays(page, id, why) {
  const from = await page.evaluate(() => performance.now());
  assert.equal(await holding(cardOf(page, { id })).count(), 0, why);
  await page.waitForFunction((from) => performance.now() - from > 1_100, from);
  assert.equal((await world.api(`/api/v1/approvals/${id}`)).state, "pending", why);
}

test("whatever ends a hold leaves the request open", async () => {
  const { page } = visitor;
  const told = agent.ask("Bash", { command: "rm -rf ./held" });
  const { id } = await agent.pending();
  const card = cardOf(page, { id });
  const ends = {
    "another key": () => page.keyboard.down("Shift"),
    "the key under another name": () => page.evaluate(() => document.activeElement.dispatchEvent(new KeyboardEvent("keyup", { key: "A", bubbles: true }))),
    "another window": () => page.evaluate(() => dispatchEvent(new Event("blur"))),
    "another tab": () => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))),
    "another place of the page": () => page.evaluate(() => document.querySelector("h1").focus()),
  };
  for (const [why, end] of Object.entries(ends)) {
    await ready(allow(card));
    await card.focus();
    await page.keyboard.down("a");
    await holding(card).waitFor();
    await end();
    await stays(page, id, why);
    await page.keyboard.up("a");
    await page.keyboard.up("Shift");
  }
  await ready(deny(card));
  await deny(card).click();
  await told;
});

test("a hold does not end as a press when the button no longer has to be held", async () => {
  const { page } = visitor;
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 480 });
  const told = agent.ask("Bash", { command: `cargo test\n${"echo one two three four five six\n".repeat(10)}touch end` });
  const { id } = await agent.pending();
  const card = cardOf(page, { id });
  await ready(allow(card));
  await allow(card).hover();
  await page.mouse.down();
  await holding(card).waitFor();
  await page.setViewportSize({ width: 390, height: 1_600 });
  await card.getByRole("button", { name: "Allow once", exact: true }).waitFor();
  await allow(card).hover();
  await page.mouse.up();
  await stays(page, id, "neither held nor pressed");
  await page.setViewportSize(size);
  await ready(deny(card));
  await deny(card).click();
  await told;
});

test("a key that stays down decides one request", async () => {
  const { page } = visitor;
  const second = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000005${String(count).padStart(2, "0")}`, `p${count}`);
  await second.begin("Do it too");
  const told = agent.ask("Bash", { command: "touch one" });
  const { id } = await agent.pending();
  const other = second.ask("Bash", { command: "touch next" });
  const { id: next } = await second.pending();
  await ready(allow(cardOf(page, { id: next })));
  await ready(allow(cardOf(page, { id })));
  await cardOf(page, { id }).focus();
  await page.keyboard.down("a");
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await ready(allow(cardOf(page, { id: next })));
  for (const [key, on] of [
    ["a", cardOf(page, { id: next })],
    ["Enter", allow(cardOf(page, { id: next }))],
  ]) {
    if (key === "Enter") {
      await page.locator("h1").focus();
      await page.keyboard.down(key);
    }
    await on.focus();
    await page.keyboard.down(key);
    await stays(page, next, key);
    await page.keyboard.up(key);
  }
  await deny(cardOf(page, { id: next })).click();
  await other;
});

test("a key decides nothing that is out of view", async () => {
  const { page } = visitor;
  const size = page.viewportSize();
  const second = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000006${String(count).padStart(2, "0")}`, `p${count}`);
  await second.begin("Do it too");
  const told = agent.ask("Bash", { command: "touch above" });
  const { id } = await agent.pending();
  const other = second.ask("Bash", { command: "touch below" });
  const { id: below } = await second.pending();
  await page.setViewportSize({ width: 900, height: 420 });
  const card = cardOf(page, { id });
  await ready(allow(cardOf(page, { id: below })));
  for (const key of ["a", "d"]) {
    await card.focus();
    await ready(allow(card));
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.keyboard.press(key);
    await eventually("its buttons are in view", () =>
      allow(card).evaluate((button) => button.getBoundingClientRect().top >= 0 && button.getBoundingClientRect().bottom <= innerHeight),
    );
    await stays(page, id, key);
  }
  await ready(allow(card));
  await page.keyboard.press("a");
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await page.setViewportSize(size);
  await ready(deny(cardOf(page, { id: below })));
  await deny(cardOf(page, { id: below })).click();
  await other;
});

test("a request that comes late takes no focus from what is typed", async () => {
  const { page } = visitor;
  await agent.hook("Notification", { message: "Claude needs your permission to use Bash", notification_type: "permission_prompt" });
  const { id: session } = await agent.known();
  await page.goto(`${world.url}/`);
  await page.locator(`[data-session="${session}"]`).getByText("Needs approval").waitFor();
  await eventually("the jump leads to it", async () => {
    await page.keyboard.press("]");
    await page.waitForURL(/\/s\//);
    return page.url().endsWith(session);
  });
  await page.locator("summary", { hasText: "Notes" }).click();
  const field = page.getByLabel("Note", { exact: true });
  await field.fill("da");
  const told = agent.ask("Bash", { command: "touch late" });
  const approval = await agent.pending();
  await cardOf(page, approval).waitFor();
  await ready(allow(cardOf(page, approval)));
  assert.equal((await focused(page)).card, null);
  await page.keyboard.type("da");
  assert.equal(await field.inputValue(), "dada");
  await stays(page, approval.id, "it was typed");
  await ready(deny(cardOf(page, approval)));
  await deny(cardOf(page, approval)).click();
  await told;
  await agent.hook("SessionEnd", { reason: "other" });
});

test("a jump to a session selects its request", async () => {
  const { page } = visitor;
  const told = agent.ask("Bash", { command: "touch jumped" });
  const { id, session_id } = await agent.pending();
  await page.goto(`${world.url}/`);
  await page.locator(`[data-session="${session_id}"]`).getByText("Needs approval").waitFor();
  await eventually("the jump leads to it", async () => {
    await page.keyboard.press("]");
    await page.waitForURL(/\/s\//);
    return page.url().endsWith(session_id);
  });
  await eventually("its request is selected", async () => (await focused(page)).card === id);
  await ready(deny(cardOf(page, { id })));
  await page.keyboard.press("r");
  await page.keyboard.type("Not so.");
  await page.keyboard.press("Shift+Tab");
  await cardOf(page, { id }).focus();
  await page.keyboard.press("d");
  assert.match(decision(await told).message, /Not so\./);
});

test("shortcuts of a single letter can be switched off, in this browser", async () => {
  const { page } = visitor;
  const told = agent.ask("Bash", { command: "touch dictated" });
  const approval = await agent.pending();
  const card = cardOf(page, approval);
  await ready(allow(card));
  await page.keyboard.press("?");
  const setting = page.getByRole("dialog", { name: "Keys" }).getByRole("checkbox", { name: /single letter/ });
  await setting.uncheck();
  await page.keyboard.press("Escape");
  await page.reload();
  await ready(allow(card));
  for (const key of ["j", "]", "?", "/", "`"]) await page.keyboard.press(key);
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.equal((await focused(page)).card, null);
  await card.focus();
  for (const key of ["a", "d", "r"]) await page.keyboard.press(key);
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "pending");
  assert.equal(await card.locator("[aria-keyshortcuts]").count(), 0);
  // Arrow keys and Ctrl-K are not letters.
  await page.locator("h1").focus();
  await page.keyboard.press("ArrowUp");
  assert.equal((await focused(page)).card, approval.id);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Search/ }).fill("shortcuts of a single");
  await page.getByRole("option").filter({ hasText: "letter on" }).click();
  await card.focus();
  await page.keyboard.press("d");
  assert.equal(decision(await told).behavior, "deny");
});

test("keys decide in a focused card only", async () => {
  const told = agent.ask("Bash", { command: "touch keys" });
  const approval = await agent.pending();
  const card = cardOf(visitor.page, approval);
  await ready(allow(card));
  await visitor.page.locator("h1").click();
  await visitor.page.keyboard.press("a");
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "pending");
  await card.focus();
  await visitor.page.keyboard.press("a");
  assert.deepEqual(decision(await told), { behavior: "allow" });
});

test("questions are answered and plans approved in place", async () => {
  const asked = agent.ask("AskUserQuestion", {
    questions: [
      { question: "Which color?", options: [{ label: "Red" }, { label: "Blue" }] },
      { question: "Which parts?", options: [{ label: "Top" }, { label: "Rim" }], multiSelect: true },
    ],
  });
  const card = cardOf(visitor.page, await agent.pending());
  await card.getByLabel("Blue").check();
  assert.equal(await allow(card).getAttribute("aria-disabled"), "true", "one question is open");
  await card.getByLabel("Top").check();
  await card.getByLabel("Rim").check();
  await ready(allow(card));
  await allow(card).click();
  assert.deepEqual(decision(await asked).updatedInput.answers, { "Which color?": "Blue", "Which parts?": "Top, Rim" });

  const plan = agent.ask("ExitPlanMode", { plan: "# Steps\n\n1. **go**" });
  const second = cardOf(visitor.page, await agent.pending());
  await second.locator("strong", { hasText: "go" }).waitFor();
  await ready(allow(second));
  await allow(second).click();
  assert.equal(decision(await plan).behavior, "allow");
});

test("nothing of a plan is hidden by its markup", async () => {
  const written = [
    "Read [the guide](https://evil.example/run.sh 'x') and [the docs](https://docs.example/a?b=1 \"read me\").",
    "![diagram](javascript:alert(1)) ![logo](https://cdn.example/x.png)",
    "```sh title=harmless rm-rf\necho hello\n```",
  ];
  const plan = agent.ask("ExitPlanMode", { plan: written.join("\n\n") });
  const card = cardOf(visitor.page, await agent.pending());
  const shown = await card.locator(".plan").innerText();
  for (const words of [
    "https://docs.example/a?b=1",
    "read me",
    "https://cdn.example/x.png",
    "sh title=harmless rm-rf",
    "https://evil.example/run.sh",
    "javascript:alert",
  ]) {
    assert.ok(shown.includes(words), `${words} is missing in ${shown}`);
  }
  await ready(allow(card));
  await allow(card).click();
  assert.equal(decision(await plan).behavior, "allow");
});

test("a rule needs a code from the terminal, and is the one that was shown", async () => {
  const { devices } = await visitor.page.evaluate(() => fetch("/api/v1/devices").then((answer) => answer.json()));
  const { id } = devices.find((device) => device.current);
  const told = agent.ask("Bash", { command: "make lint-once" });
  const card = cardOf(visitor.page, await agent.pending());
  await card.scrollIntoViewIfNeeded();
  await card.getByLabel("Always").check();
  const rule = await card.getByLabel("the rule").innerText();
  await ready(allow(card));
  await allow(card).click();
  const dialog = visitor.page.getByRole("dialog", { name: "Confirm at your terminal" });
  await dialog.getByText(`--device ${id}`).waitFor();
  await dialog.getByLabel("Code").fill(await world.code("admin", id));
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await dialog.waitFor({ state: "detached" });
  await ready(allow(card));
  await allow(card).click();
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await card.getByText(/^Allowed/).waitFor();
  // The agent gets the decision before the rule is saved, and the stream reports it before the request is answered.
  const file = join(world.root, "config/capture/policy.toml");
  await eventually(
    "the rule is saved",
    () =>
      existsSync(file) &&
      rule
        .trim()
        .split("\n")
        .every((line) => readFileSync(file, "utf8").includes(line.trim())),
  );
});

test("equal requests are decided together, once each, and others are not", async () => {
  const twin = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000002${String(count).padStart(2, "0")}`, `p${count}`);
  await twin.begin("Do it too");
  const other = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000003${String(count).padStart(2, "0")}`, `p${count}`);
  await other.begin("Do something else");
  const [first, second, third] = [
    agent.ask("Bash", { command: "touch same" }),
    twin.ask("Bash", { command: "touch same" }),
    other.ask("Bash", { command: "touch other" }),
  ];
  for (const one of [twin, other]) await one.pending();
  const left = await other.pending();
  await visitor.page.reload();
  const card = cardOf(visitor.page, await agent.pending());
  await card.scrollIntoViewIfNeeded();
  await card.getByLabel(/1 equal request/).check();
  await ready(allow(card));
  await allow(card).click();
  assert.deepEqual(decision(await first), { behavior: "allow" });
  assert.deepEqual(decision(await second), { behavior: "allow" });
  assert.equal((await world.api(`/api/v1/approvals/${left.id}`)).state, "pending");
  const rest = cardOf(visitor.page, left);
  await ready(deny(rest));
  await deny(rest).click();
  assert.equal(decision(await third).behavior, "deny");
});

test("an edit is shown as a difference", async () => {
  agent.write("a.txt", "one\ntwo\n");
  const told = agent.ask("Edit", { file_path: `${agent.cwd}/a.txt`, old_string: "one\ntwo\n", new_string: "one\nthree\n" });
  const card = cardOf(visitor.page, await agent.pending());
  await card.locator(".diff-removed", { hasText: "two" }).waitFor();
  await card.locator(".diff-added", { hasText: "three" }).waitFor();
  await ready(deny(card));
  assert.equal(await allow(card).innerText(), "Allow once", "all of it is in sight: it is not held");
  assert.equal(await card.locator("figcaption .path").innerText(), "a.txt", "its directory is in the head of the card");
  assert.equal(await card.locator("figcaption .path").getAttribute("title"), `${agent.cwd}/a.txt`);
  assert.ok(!(await card.innerText()).includes(`${agent.cwd}/a.txt`));
  await deny(card).click();
  assert.equal(decision(await told).behavior, "deny");

  const outside = `${agent.cwd}/../elsewhere/a.txt`;
  const other = agent.ask("Write", { file_path: outside, content: "one\n" });
  const second = cardOf(visitor.page, await agent.pending());
  await ready(deny(second));
  assert.equal(await second.locator("figcaption .path").innerText(), outside, "a path that leaves its directory is whole");
  await deny(second).click();
  assert.equal(decision(await other).behavior, "deny");
});

test("a request that was answered elsewhere says so, and nothing is sent twice", async () => {
  const other = await visitor.open("/approvals");
  const told = agent.ask("Bash", { command: "touch twice" });
  const approval = await agent.pending();
  const [first, second] = [cardOf(visitor.page, approval), cardOf(other, approval)];
  await ready(allow(first));
  await ready(deny(second));
  // The second tab does not learn of the decision before it sends its own.
  await other.route("**/api/v1/stream*", (route) => route.abort());
  await other.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  await allow(first).click();
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await first.getByText(/^Allowed/).waitFor();
  await second.getByText(/^Allowed/).waitFor();
  assert.equal(await allow(second).count(), 0);
  const answer = await visitor.page.evaluate(
    (id) =>
      fetch(`/api/v1/approvals/${id}/decision`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Capture": "1" },
        body: '{"decision":"deny"}',
      }).then((answer) => answer.status),
    approval.id,
  );
  assert.equal(answer, 409);
  await other.close();
});

test("a decision that comes second says what was decided, by whom and when", async () => {
  const other = await visitor.open("/approvals");
  const told = agent.ask("Bash", { command: "touch raced" });
  const approval = await agent.pending();
  const [first, second] = [cardOf(visitor.page, approval), cardOf(other, approval)];
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const refused = other.waitForResponse((answer) => answer.url().endsWith("/decision"));
  await other.route("**/decision", async (route) => {
    await held;
    await route.continue();
  });
  await ready(deny(second));
  await deny(second).click();
  await ready(allow(first));
  await allow(first).click();
  assert.deepEqual(decision(await told), { behavior: "allow" });
  release();
  assert.equal((await refused).status(), 409);
  await second.getByText(/^Already allowed by .+ at \d\d:\d\d.*Your denial was not used\.$/).waitFor();
  await other
    .getByRole("status")
    .getByText(/^Already allowed in .+ at \d\d:\d\d\. Your denial was not used\.$/)
    .waitFor();
  assert.equal((await second.locator("pre.exact").innerText()).trim(), "touch raced");
  assert.equal(await deny(second).count(), 0);
  await other.close();
});

test("nothing is shown as decided before the server said so", async () => {
  const told = agent.ask("Bash", { command: "touch slow" });
  const approval = await agent.pending();
  const card = cardOf(visitor.page, approval);
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await visitor.page.route("**/decision", async (route) => {
    await held;
    await route.continue();
  });
  await ready(allow(card));
  await allow(card).click();
  await card.getByText("Sending…").waitFor();
  assert.equal(await card.getByText(/^Allowed/).count(), 0);
  release();
  await card.getByText(/^Allowed/).waitFor();
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await visitor.page.unroute("**/decision");
});

test("a refused decision is told, and can be tried again", async () => {
  const told = agent.ask("Bash", { command: "touch again" });
  const card = cardOf(visitor.page, await agent.pending());
  await visitor.page.route(
    "**/decision",
    (route) =>
      route.fulfill({ status: 503, contentType: "application/json", body: '{"error":{"code":"unavailable","message":"temporarily unavailable; retry"}}' }),
    { times: 1 },
  );
  await ready(allow(card));
  await allow(card).click();
  await card
    .getByRole("alert")
    .filter({ hasText: /unavailable/ })
    .waitFor();
  await ready(allow(card));
  await allow(card).click();
  assert.deepEqual(decision(await told), { behavior: "allow" });
});

test("a request that changed meanwhile is one's own decision still", async () => {
  const told = agent.ask("Bash", { command: "touch changed" });
  const card = cardOf(visitor.page, await agent.pending());
  await visitor.page.route(
    "**/decision",
    (route) =>
      route.fulfill({
        status: 409,
        contentType: "application/json",
        body: '{"error":{"code":"conflict","message":"the request changed; read it again","details":{"state":"pending"}}}',
      }),
    { times: 1 },
  );
  await ready(allow(card));
  await allow(card).click();
  await card
    .getByRole("alert")
    .filter({ hasText: /changed/ })
    .waitFor();
  await ready(deny(card));
  await deny(card).click();
  assert.equal(decision(await told).behavior, "deny");
  await card.getByText(/^Denied by a person/).waitFor();
  assert.equal(await card.getByText("was not used").count(), 0);
});

test("a link opens the request it names, on a phone by touch", async () => {
  const told = agent.ask("Bash", { command: "touch phone" });
  const approval = await agent.pending();
  const phone = await Visitor.paired(browser, world, "control", { phone: true });
  const page = await phone.open(`/approvals/${approval.id}`);
  const card = cardOf(page, approval);
  await eventually("the card has the focus", () => card.evaluate((element) => document.activeElement === element));
  await ready(allow(card));
  const [left, right] = [await deny(card).boundingBox(), await allow(card).boundingBox()];
  assert.ok(right.x - (left.x + left.width) > 40, "Allow and Deny are far apart");
  assert.ok(left.height >= 44 && right.height >= 44);
  await allow(card).tap();
  assert.deepEqual(decision(await told), { behavior: "allow" });
  await phone.close();
});

test("a wide window lists beside the queue what waits, and leads to it", async () => {
  const wide = await Visitor.paired(browser, world, "control", { viewport: { width: 1600, height: 500 } });
  const others = [];
  for (const number of [1, 2]) {
    const other = world.agent("claude", `5a6b7c8d-0000-4000-8000-00000000019${number}`, `beside${number}`);
    await other.begin("Beside");
    void other.ask("Bash", { command: `make part-${number}\n${"echo line\n".repeat(20)}` }, "120");
    others.push(await other.pending());
  }
  const page = await wide.open("/approvals");
  const last = cardOf(page, others[1]);
  await last.waitFor();
  await page
    .getByRole("list", { name: "Requests of the queue" })
    .getByRole("button", { name: /make part-2/ })
    .click();
  await eventually("the card is shown and has the focus", () =>
    last.evaluate((card) => document.activeElement === card && card.getBoundingClientRect().top >= 0 && card.getBoundingClientRect().top < innerHeight),
  );
  // A request that comes into view is loaded and may grow.
  for (const other of others) await ready(allow(cardOf(page, other)));
  // A dialog must open at the current scroll position.
  const before = await page.evaluate(() => scrollY);
  assert.ok(before > 0);
  await page.keyboard.press("?");
  const box = await page.getByRole("dialog", { name: "Keys" }).boundingBox();
  assert.ok(box.y >= 0 && box.y + box.height <= 500, JSON.stringify(box));
  assert.equal(await page.evaluate(() => scrollY), before);
  await wide.close();
});

test("only requests in view are asked for again", async () => {
  const size = visitor.page.viewportSize();
  const above = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000007${String(count).padStart(2, "0")}`, `p${count}`);
  await above.begin("Above");
  const told = above.ask("Bash", { command: `make above\n${"echo line\n".repeat(30)}` });
  const first = await above.pending();
  await agent.hook("Notification", { message: "Claude needs your permission to use Bash", notification_type: "permission_prompt" });
  const { id } = await agent.pending((approval) => approval.unanswerable != null);
  const page = await visitor.open("/");
  await page.setViewportSize({ width: 900, height: 300 });
  let asked = 0;
  page.on("request", (request) => (asked += request.url().endsWith(`/approvals/${id}`) ? 1 : 0));
  await page
    .getByRole("link", { name: /Approvals/ })
    .first()
    .click();
  await cardOf(page, { id }).waitFor({ state: "attached" });
  await page.waitForFunction((from) => performance.now() - from > 2_500, await page.evaluate(() => performance.now()));
  assert.equal(asked, 0, "nothing is read that nobody sees");
  await cardOf(page, { id }).scrollIntoViewIfNeeded();
  await cardOf(page, { id })
    .getByText(/no hook waits/i)
    .waitFor();
  await eventually("it is asked whether it can be answered now", () => asked >= 2);
  await page.close();
  await visitor.page.setViewportSize(size);
  await cardOf(visitor.page, first).scrollIntoViewIfNeeded();
  await ready(deny(cardOf(visitor.page, first)));
  await deny(cardOf(visitor.page, first)).click();
  await told;
});
