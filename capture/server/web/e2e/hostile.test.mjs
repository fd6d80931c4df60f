// Hostile texts of agents: nothing is executed, nothing is fetched, and every character is visible.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { cardOf, Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

let canary;
let fetched = 0;
setup({
  async prepare() {
    canary = createServer((_, answer) => {
      fetched += 1;
      answer.end();
    });
    await new Promise((resolve) => canary.listen(0, "127.0.0.1", resolve));
  },
});
after(() => canary?.close());

const texts = (port) => [
  `<script>globalThis.ran=1;fetch("http://127.0.0.1:${port}/s")</script>`,
  `<img src="http://127.0.0.1:${port}/i" onerror="globalThis.ran=1">`,
  `<svg onload="globalThis.ran=1"><use href="http://127.0.0.1:${port}/u"/></svg>`,
  `![x](http://127.0.0.1:${port}/m) [click](javascript:globalThis.ran=1) </textarea><iframe src="http://127.0.0.1:${port}/f">`,
  "\u202egnirts neddih\u202c \u200bzero\u200b \u{e0041}\u{e0042} \x1b[31mred\x1b[0m \x1b]8;;http://evil.test\x07link\x1b]8;;\x07 \x1b[2J\x07",
];

/** Fails if a text was interpreted as more than text in a page, or hides something. */
async function harmless(page) {
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  assert.equal(await page.locator("img, iframe, script:not([src='/assets/app.js'], [src^='/assets/app.js?v=']), object, embed").count(), 0);
  const hidden = await page.evaluate(() => {
    const pattern = /[\u202a-\u202e\u200b\u2066-\u2069\u{e0001}-\u{e007f}\x1b\x07]/u;
    const spoken = [...document.querySelectorAll("[aria-label], [title], [alt], [placeholder]")].flatMap((element) =>
      ["aria-label", "title", "alt", "placeholder"].map((name) => element.getAttribute(name) ?? ""),
    );
    return [document.body.innerText, document.title, ...spoken].find((text) => pattern.test(text))?.slice(0, 200);
  });
  assert.equal(hidden, undefined, `a hidden character is shown as it is at ${page.url()}`);
}

test("hostile titles, prompts, answers, commands, outputs and file names are text in every view", async () => {
  const { port } = canary.address();
  const all = texts(port);
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000401", 'proj <img src=x onerror="globalThis.ran=1">');
  agent.transcribe([{ prompt: all.join("\n\n") }, { answer: all.join("\n\n") }, { bash: all.join("; ") }, { output: all.join("\n") }, { answer: "done" }]);
  await agent.begin(all[0]);
  const { id } = await eventually("its transcript is read", async () => {
    const session = await agent.known();
    return session.turns > 0 ? session : undefined;
  });
  await world.api(`/api/v1/sessions/${id}/labels`, { labels: { "<b>key": '"><script>ran=1</script>' } }, "PUT");
  void agent.ask("Bash", { command: all.join("\n"), description: all[0], timeout: 5 }, "100");
  const approval = await agent.pending();
  const second = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000402", "second");
  await second.begin("x");
  void second.ask("Edit", { file_path: `${second.cwd}/${all[0].slice(0, 60).replaceAll("/", "")}\u202e.txt`, old_string: all[3], new_string: all[4] }, "100");
  const edit = await second.pending();
  const third = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000403", "third");
  await third.begin("x");
  void third.ask("AskUserQuestion", { questions: [{ question: all[1], options: [{ label: all[0], description: all[2] }, { label: all[4] }] }] }, "100");
  await third.pending();
  const fourth = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000404", "fourth");
  await fourth.begin("x");
  void fourth.ask("ExitPlanMode", { plan: all.join("\n\n") }, "100");
  await fourth.pending();

  const visitor = await Visitor.paired(browser, world);
  const { page } = visitor;
  const clean = () => harmless(page);
  await page.locator("a.session-link").nth(3).waitFor();
  await clean();
  await page.goto(`${world.url}/approvals`);
  const card = cardOf(page, approval);
  await card.getByText("\\u{202e}", { exact: true }).first().waitFor();
  await card.getByText(/\d+ hidden characters/).waitFor();
  assert.equal((await card.locator("pre.exact").innerText()).includes("<script>globalThis.ran=1"), true);
  await cardOf(page, edit).locator(".diff-removed", { hasText: "</textarea><iframe" }).waitFor();
  await page.getByRole("radio").first().waitFor();
  await clean();
  await page.goto(`${world.url}/s/${id}`);
  const conversation = page.getByRole("region", { name: "Conversation" });
  await conversation.getByText("<svg onload=").first().waitFor();
  for (const line of await conversation.locator(".tool-line").all()) await line.click();
  await conversation.locator(".output").first().waitFor();
  await clean();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: /Search sessions/ }).fill("onerror");
  await page.getByRole("option").filter({ hasText: "onerror" }).first().waitFor();
  await clean();
  for (const path of [
    "/overview",
    "/devices",
    `/s/${encodeURIComponent("<script>globalThis.ran=1</script>")}`,
    "/?q=%3Cscript%3EglobalThis.ran%3D1%3C/script%3E",
  ]) {
    await page.goto(world.url + path);
    await page.locator("main").waitFor();
    await clean();
  }
  assert.equal(fetched, 0);
  await visitor.close();
});

test("hostile terminals, decisions, prompts, findings and devices are text", async () => {
  const all = texts(canary.address().port);
  const HIDE = "\u202egnp\u202c\u200b";
  // A terminal receives its program's bytes in its title, its rows, and under the cursor.
  const script = join(world.home, "hostile.sh");
  writeFileSync(
    script,
    `printf '\\033]0;%s\\007' '<img src=x onerror="globalThis.ran=1">${HIDE}title'\nprintf '%s\\r\\n' '${all[0]}' '${all[1]}' '${HIDE}row' '\u{e0041}tag'\nprintf '%s\\r' '\u202eunder'\nexec cat\n`,
  );
  world.spawn(["run", "--detach", "--name", "hostile", "--size", "100x24", "--record", "--", "sh", script]).stdin.end();
  const run = await eventually("the run is there", async () =>
    (await world.api("/api/v1/runs")).runs.find((run) => run.name === "hostile" && run.session_id !== null && run.size !== null),
  );
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open(`/terminal/${run.id}`);
  const screen = page.getByRole("region", { name: "Screen" });
  await screen.getByText("<script>globalThis.ran=1").waitFor();
  await screen.getByText("\\u{202c}").first().waitFor();
  await page.locator(".terminal-head").getByText("<img src=x onerror=").waitFor();
  await harmless(page);
  // Its recording; a time after the end shows the last screen.
  for (const query of ["", "?t=0", "?t=3600"]) {
    await page.goto(`${world.url}/recordings/${run.id}${query}`);
    await page.getByRole("slider", { name: "Time of the recording" }).waitFor();
    if (query === "?t=3600") await screen.getByText("<script>globalThis.ran=1").waitFor();
    await harmless(page);
  }

  // The session's prompt queue, its notes, and the title of the session that another one continues.
  for (const text of all) await world.api(`/api/v1/sessions/${run.session_id}/notes`, { text: text.slice(0, 1_000) });
  await world.api(`/api/v1/sessions/${run.session_id}/prompts`, { text: `${all[1]} ${HIDE}` }).catch((error) => assert.match(error.message, /40[09]/));
  await page.goto(`${world.url}/s/${run.session_id}`);
  await page.locator(".side-body").getByText("<svg onload=").first().waitFor();
  await harmless(page);

  // Findings and decisions, with their reasons.
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000406", `risky ${HIDE}<b>`);
  await agent.begin(`${HIDE}${all[0]}`);
  const told = agent.ask("Bash", { command: `rm -rf ./x${HIDE} ${all[1]}` }, "100");
  const approval = await agent.pending();
  await eventually("it is found to be risky", async () =>
    (await world.api("/api/v1/findings")).findings.some((finding) => finding.kind === "risky_approval" && finding.approval_id === approval.id),
  );
  await page.goto(`${world.url}/s/${approval.session_id}`);
  await page.locator("[data-approval]").waitFor();
  await harmless(page);
  // Next to a request's card its finding is omitted; a small screen shows it.
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("tab", { name: "Details" }).click();
  await page.locator(".finding").first().waitFor();
  await harmless(page);
  await page.setViewportSize(size);
  const { revision } = await world.api(`/api/v1/approvals/${approval.id}`);
  await world.api(`/api/v1/approvals/${approval.id}/decision`, { decision: "deny", revision, message: `${HIDE}${all.join(" ")}` });
  await told;
  await page.goto(`${world.url}/approvals?view=decided`);
  const row = page.locator(".decided tr", { hasText: "rm -rf" }).first();
  await row.getByText("<iframe src=").waitFor();
  await harmless(page);

  // A device with a hostile name, and the page's message when it is revoked.
  const guest = await Visitor.make(browser, world);
  const pairing = await guest.open("/pair");
  await pairing.getByLabel("Code").fill(await world.code("read"));
  await pairing.getByLabel("Name of this device").fill(`<img src=x onerror="globalThis.ran=1">${HIDE}`);
  await pairing.getByRole("button", { name: "Pair" }).click();
  await pairing.getByRole("navigation", { name: "Pages", exact: true }).waitFor();
  await guest.close();
  await page.goto(`${world.url}/devices`);
  const device = page.getByRole("listitem").filter({ hasText: "<img src=x" });
  await device.waitFor();
  await harmless(page);
  await device.getByRole("button", { name: "Revoke" }).click();
  await device.getByRole("button", { name: "Revoke now" }).click();
  await page.getByText(/has no access any more/).waitFor();
  await harmless(page);
  assert.equal(fetched, 0);
  await visitor.close();
});

test("a link goes out without telling from where, and shows where it goes", async () => {
  const agent = world.agent("claude", "5a6b7c8d-0000-4000-8000-000000000405", "links");
  agent.transcribe([{ prompt: "Look" }, { answer: "See [the docs](https://other.test/page) and [https://good.test](https://evil.test/x)." }]);
  await agent.begin("Look");
  const { id } = await agent.known();
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open(`/s/${id}`);
  const link = page.getByRole("link", { name: /the docs/ });
  await link.waitFor();
  assert.match(await link.getAttribute("rel"), /noopener.*noreferrer/);
  assert.match(await link.innerText(), /other\.test/);
  assert.match(await page.getByRole("link", { name: /good\.test/ }).innerText(), /evil\.test/);
  await visitor.close();
});
