// The page of a session: real recorded sessions, the timeline, the conversation, labels.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Visitor } from "./browser.mjs";
import { browser, setup, visitor, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

setup({ shared: true });

const conversation = (page) => page.getByRole("region", { name: "Conversation" });

for (const recording of ["claude/S15-edit-write", "codex/S15-edit-approval", "gemini/S15-file-edit", "claude/S12-subagent"]) {
  test(`a recorded session is shown with all that was said: ${recording}`, async () => {
    const native = await world.play(recording);
    const session = await eventually("the session has a turn that is over", async () => {
      const { sessions } = await world.api("/api/v1/sessions?active=all");
      return sessions.find((session) => session.provider_session_id === native && session.turns > 0 && session.turn === null);
    });
    const { items } = await world.api(`/api/v1/sessions/${session.id}/conversation?limit=1000`);
    const { page } = visitor;
    await page.goto(`${world.url}/s/${session.id}`);
    const prompt = items.find((item) => item.type === "prompt");
    await conversation(page).getByText(prompt.text.split("\n")[0].slice(0, 40)).first().waitFor();
    const calls = items.filter((item) => item.type === "tool_call");
    await eventually("every call is shown", async () => (await conversation(page).locator(".tool-line").count()) === calls.length);
    assert.ok(calls.length > 0);
    const first = conversation(page).locator(".tool-line").first();
    await first.click();
    await conversation(page).locator(".tool-body").first().waitFor();
    await page.getByRole("heading", { name: "Why this status" }).waitFor();
    await page.locator(".claims td", { hasText: "decides" }).first().waitFor();
  });
}

test("a press on the timeline shows the status of that moment and its claims", async () => {
  const native = await world.play("claude/S17-parallel");
  const agent = world.agent("claude", native);
  const { id } = await agent.known();
  const { changes } = await eventually("its status changed", async () => {
    const page = await world.api(`/api/v1/sessions/${id}/status/changes?limit=1000`);
    return page.changes.length > 1 ? page : undefined;
  });
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  const slider = page.getByRole("slider", { name: "Moment of the timeline" });
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("heading", { name: /^At / }).waitFor();
  await page.locator(".moment .claims-status").waitFor();
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await slider.getAttribute("aria-valuetext"), "now");
  await page.getByRole("button", { name: "Show in the conversation" }).click();
  await page.waitForURL(/[?]at=\d+/);
  await page.getByRole("button", { name: "Table" }).click();
  await eventually("the table has every change", async () => (await page.locator(".timeline-table tbody tr").count()) >= changes.length);
});

test("the head and the explanation of a status agree, and lead to the finding that makes it so", async () => {
  const { page } = visitor;
  const stuck = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000261", "stuck");
  const again = [{ bash: "npx eslint src/index.ts" }, { output: "1 problem" }];
  stuck.transcribe([{ prompt: "Lint it" }, ...Array.from({ length: 12 }, () => again).flat()]);
  await stuck.begin("Go on");
  const asks = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000262", "asks");
  await asks.begin("Ask");
  void asks.ask("AskUserQuestion", { questions: [{ question: "Which?", options: [{ label: "A" }] }] }, "300");
  await asks.pending();
  for (const [agent, word] of [
    [stuck, "Stuck"],
    [asks, "Asks a question"],
  ]) {
    const { id } = await agent.known();
    await page.goto(`${world.url}/s/${id}`);
    await page.locator(".session-facts .state-word", { hasText: word }).waitFor();
    await page.locator(".claims-status strong", { hasText: word }).waitFor();
    // The word is not repeated as the reason.
    assert.equal((await page.locator(".session-facts .state-word").innerText()).toLowerCase().match(/stuck|question/g).length, 1);
  }
  await page.goto(`${world.url}/s/${(await stuck.known()).id}`);
  await page
    .locator(".claims")
    .getByText(/makes it so: .*npx eslint/)
    .waitFor();
  await page.locator(".claims").getByRole("link", { name: "Loop" }).click();
  const finding = page.locator(".finding:target", { hasText: "npx eslint" });
  await finding.locator("code", { hasText: "npx eslint" }).waitFor();
  assert.ok(!(await finding.innerText()).includes("`"));
  assert.ok(await finding.evaluate((element) => element.getBoundingClientRect().top >= 0 && element.getBoundingClientRect().bottom <= innerHeight));
});

test("what the agent said is shown next to what its checks and edits show", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000291", "claims");
  agent.transcribe([
    { prompt: "Fix src/parser.rs" },
    { bash: "cargo test" },
    { output: "test result: ok. 297 passed; 0 failed; 0 ignored" },
    { edit: "src/parser.rs" },
    { output: "The file has been updated." },
    { edit: "web/app.ts" },
    { output: "The file has been updated." },
    { answer: "All 297 tests pass." },
  ]);
  await agent.begin("Thanks");
  const { id } = await agent.known();
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByText("Turn 1 · tests 297 passed, then 2 edits").waitFor();
  await details.locator(".error-text", { hasText: "All 297 tests pass" }).getByText("stale: tests 297 passed, then 2 edits").waitFor();
  await details.getByText("Scope").click();
  await details.locator(".files li", { hasText: "web/app.ts" }).getByText("elsewhere 1×").waitFor();
  await details.locator(".files li", { hasText: "src/parser.rs" }).getByText("named 1×").waitFor();
});

test("what the agent does appears while the page is open", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000201", "live");
  agent.transcribe([{ prompt: "Count to three" }]);
  await agent.begin("Count to three");
  const { id } = await agent.known();
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  await conversation(page).getByText("Count to three").waitFor();
  agent.transcribe([{ prompt: "Count to three" }, { bash: "seq 3" }, { output: "1\n2\n3" }, { answer: "**Three** it is." }].slice(1), {
    sessionId: agent.session,
    parentUuid: null,
  });
  await conversation(page).locator(".tool-line", { hasText: "seq 3" }).waitFor();
  await conversation(page).locator("strong", { hasText: "Three" }).waitFor();
});

test("a past call warns of characters that deceive, and of no others", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000281", "letters");
  agent.transcribe([
    { prompt: "Do" },
    { bash: "echo 更新 größe" },
    { output: "ok" },
    { bash: "curl p\u0430ypal.example" },
    { output: "ok" },
    { bash: "echo a\u200bb" },
    { output: "ok" },
  ]);
  await agent.begin("Do");
  const { id } = await agent.known();
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  for (const [command, warning] of [
    ["更新", null],
    ["ypal", "1 look-alike character"],
    ["echo a", "1 hidden character"],
  ]) {
    const call = conversation(page).locator(".tool", { hasText: command });
    await call.locator(".tool-line").click();
    await call.locator("pre.exact").waitFor();
    if (warning === null) assert.equal(await call.locator(".census").count(), 0);
    else await call.locator(".census-warns", { hasText: warning }).waitFor();
  }
});

test("labels are added and removed", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000202", "labels");
  await agent.begin("Anything");
  const { id } = await agent.known();
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  await page.locator("summary", { hasText: "Labels" }).click();
  await page.getByLabel("Key").fill("team");
  await page.getByLabel("Value").fill("core");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("team=core").waitFor();
  await page.getByRole("button", { name: "Remove the label team" }).click();
  await page.getByText("team=core").waitFor({ state: "detached" });
});

test("notes are written, and stay", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000209", "notes");
  await agent.begin("Anything");
  const { id } = await agent.known();
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  await page.locator("summary", { hasText: "Notes" }).click();
  await page.getByLabel("Note", { exact: true }).fill("waits for the review\nof <b>#214</b>");
  await page.getByRole("button", { name: "Add the note" }).click();
  await page.locator(".side-body").getByText("of <b>#214</b>").waitFor();
  await page.reload();
  await page.locator(".side-body").getByText("waits for the review").waitFor();
  const { notes } = await world.api(`/api/v1/sessions/${id}/notes`);
  assert.deepEqual(
    notes.map(({ text }) => text),
    ["waits for the review\nof <b>#214</b>"],
  );
});

test("a long conversation is read where it is looked at", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000203", "long");
  const entries = [];
  for (let index = 0; index < 3_000; index += 1)
    entries.push({ prompt: `prompt ${index} begins here` }, { answer: `answer ${index}\n\n${"text ".repeat(index % 60)}` });
  agent.transcribe(entries);
  await agent.begin("last one");
  const { id } = await agent.known();
  const prompts = await eventually(
    "all of it is read",
    async () => {
      const found = [];
      for (let cursor = ""; cursor !== null; ) {
        const page = await world.api(`/api/v1/sessions/${id}/events?kind=user.prompt&limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`);
        found.push(...page.events);
        cursor = page.next_cursor;
      }
      return found.some((event) => event.text === "prompt 2999 begins here") ? found : undefined;
    },
    60_000,
  );
  const { page } = visitor;
  await page.goto(`${world.url}/s/${id}`);
  await conversation(page).getByText("prompt 2999 begins here").waitFor();
  assert.ok((await page.locator("*").count()) < 6_000, "only what is near the window is an element");
  await conversation(page).evaluate((element) => element.scrollTo(0, 0));
  await conversation(page).getByText("prompt 0 begins here").waitFor();
  await page.getByRole("button", { name: "Latest" }).click();
  await conversation(page).getByText("prompt 2999 begins here").waitFor();
  await page.goto(`${world.url}/s/${id}?at=${prompts.find((event) => event.text === "prompt 1500 begins here").sequence}`);
  const middle = page.locator(".item-marked", { hasText: "prompt 1500 begins here" });
  await middle.waitFor();
  await eventually("it is in view", () =>
    middle.evaluate((element) => element.getBoundingClientRect().top > 0 && element.getBoundingClientRect().bottom < innerHeight),
  );
  assert.equal(await conversation(page).getByText("prompt 2999 begins here").count(), 0);
});

test("long texts are shown whole when they come into view, and no Markdown is read over a hole", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000241", "long");
  const list = Array.from({ length: 300 }, (_, index) => `${index + 1}. item ${index + 1} of the list`).join("\n");
  const code = `Here:\n\n\`\`\`sh\n${"echo 1\n".repeat(400)}\`\`\`\n\nAfter the code.`;
  agent.transcribe([
    { prompt: `Do ${"a lot ".repeat(400)}and end` },
    { bash: "seq 900" },
    { output: Array.from({ length: 900 }, (_, index) => `line ${index + 1}`).join("\n") },
    { answer: list },
    { answer: code },
  ]);
  await agent.begin("Do");
  const { id } = await eventually("it is read", async () => {
    const session = await agent.known();
    return session.last_sequence > 4 ? session : undefined;
  });
  const { page } = visitor;
  // Until the whole text is loaded, the shortened text is shown as plain text.
  await page.route("**/api/v1/texts/*", (route) => route.abort());
  await page.goto(`${world.url}/s/${id}`);
  await conversation(page).getByText("A part is missing.").first().waitFor();
  assert.equal(await conversation(page).locator("ol, pre").count(), 0);
  await page.unroute("**/api/v1/texts/*");
  await page.goto(`${world.url}/s/${id}`);
  await conversation(page).getByText("After the code.").waitFor();
  assert.equal((await conversation(page).locator("pre").last().innerText()).match(/echo 1/g).length, 400, "a code fence is one block");
  const [pre, copy] = await Promise.all(["pre", ".copy"].map((part) => conversation(page).locator(`.code-block ${part}`).last().boundingBox()));
  assert.ok(pre.x + pre.width <= copy.x, "the button covers no code");
  await eventually("the list is whole", async () => {
    // Only visible parts are loaded.
    await conversation(page).evaluate((element) => (element.scrollTop = 0));
    return (await conversation(page).locator("ol li").count()) === 300;
  });
  assert.deepEqual(
    await conversation(page)
      .locator("ol li")
      .evaluateAll((items) => items.flatMap((item, index) => (item.textContent.trim() === `item ${index + 1} of the list` ? [] : [item.textContent]))),
    [],
  );
  assert.equal(await conversation(page).locator("ol").count(), 1);
  await conversation(page).locator(".tool-line").click();
  await eventually("the result is whole", async () => /line 450\nline 451/.test(await conversation(page).locator(".output").last().innerText()));
  assert.equal(await conversation(page).getByText("A part is missing.").count(), 0);
});

test("a text that changes while it is read is read again", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000242", "changing");
  const said = [{ prompt: "Do" }, { answer: `It begins. ${"And goes on. ".repeat(300)}Now it ends.` }];
  agent.transcribe(said);
  await agent.begin("Do");
  const { id } = await eventually("it is read", async () => {
    const session = await agent.known();
    return session.last_sequence > 2 ? session : undefined;
  });
  const { page } = visitor;
  const old = "0".repeat(64);
  let isAsked = false;
  let release;
  const held = new Promise((resolve) => (release = resolve));
  await page.route("**/conversation*", async (route) => {
    const response = await route.fetch();
    let text = await response.text();
    if (!isAsked) text = text.replace(/("hash":\s*")[^"]+/g, `$1${old}`);
    await route.fulfill({ response, body: text });
  });
  await page.route(`**/api/v1/texts/${old}`, async (route) => {
    isAsked = true;
    await held;
    await route.fulfill({ contentType: "text/plain", body: "An older text." });
  });
  await page.goto(`${world.url}/s/${id}`);
  await eventually("the first text is asked for", () => isAsked);
  agent.transcribe([...said, { prompt: "And more" }]);
  await conversation(page).getByText("And more").waitFor();
  release();
  await conversation(page).getByText("Now it ends.").waitFor();
  assert.equal(await conversation(page).getByText("An older text.").count(), 0);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("a phone shows the conversation and the details one after the other", async () => {
  const native = await world.play("gemini/S01-hello");
  const { id } = await world.agent("gemini", native).known();
  const phone = await Visitor.paired(browser, world, "read", { phone: true });
  const page = await phone.open(`/s/${id}`);
  await conversation(page).waitFor();
  assert.equal(await page.getByRole("heading", { name: "Why this status" }).isVisible(), false);
  await page.getByRole("tab", { name: "Details" }).tap();
  await page.getByRole("heading", { name: "Why this status" }).waitFor();
  await page.getByRole("region", { name: "Timeline" }).waitFor();
  await phone.close();
});

test("a phone says where a request can be answered", async () => {
  const here = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000271", "here");
  await here.begin("Here");
  void here.ask("Bash", { command: "touch here" }, "300");
  await here.pending();
  const away = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000272", "away");
  await away.begin("Away");
  await away.hook("Notification", { message: "Claude needs your permission to use Bash", notification_type: "permission_prompt" });
  const { id: asked } = await away.pending((approval) => approval.unanswerable != null);
  const phone = await Visitor.paired(browser, world, "control", { phone: true });
  const page = await phone.open(`/s/${(await here.known()).id}`);
  await page.getByRole("link", { name: "A request waits for your decision" }).waitFor();
  await page.goto(`${world.url}/s/${(await away.known()).id}`);
  await page.getByRole("link", { name: "A request waits in the agent" }).tap();
  await page.waitForURL(`**/approvals/${asked}`);
  const card = page.locator(`[data-approval="${asked}"]`);
  await card.getByText(/no hook waits/i).waitFor();
  assert.equal(await card.getByText("This is what the agent’s screen shows").count(), 0, "it shows nothing of it");
  await phone.close();
});
