// Texts of agents that want to be more than text: nothing runs, nothing is fetched, everything is seen as what it is.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { Visitor, cardOf } from "./browser.mjs";
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
  const clean = async () => {
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    assert.equal(await page.locator("img, iframe, script:not([src='/assets/app.js']), object, embed").count(), 0);
    const hidden = await page.evaluate(() => /[\u202a-\u202e\u200b\u2066-\u2069\u{e0001}-\u{e007f}\x1b\x07]/u.exec(document.body.innerText + document.title)?.[0]?.codePointAt(0));
    assert.equal(hidden, undefined, "a hidden character is shown as it is");
  };
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
  for (const path of ["/overview", "/devices", `/s/${encodeURIComponent("<script>globalThis.ran=1</script>")}`, "/?q=%3Cscript%3EglobalThis.ran%3D1%3C/script%3E"]) {
    await page.goto(world.url + path);
    await page.locator("main").waitFor();
    await clean();
  }
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
