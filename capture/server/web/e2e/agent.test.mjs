// Decides requests of real agents in the page: our own and, if installed, Claude Code, each with a scripted model. Only
// the model is simulated: the tests check what the agents did afterwards and what their model received.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { cardOf, ready } from "./browser.mjs";
import { model, use } from "./model.mjs";
import { setup, visitor, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

const bash = (command) => use("bash", { command });
const scripts = {
  "tidy the notes": [
    bash("touch allowed"),
    use("edit", { path: "notes.txt", edits: [{ old: "second", new: "2nd" }] }),
    use("ask", { question: "Which side?", options: ["left", "right"] }),
    bash("touch denied"),
    "All is tidy.",
  ],
  "publish it": [bash("touch published"), bash("touch announced"), "Not published."],
  "wait for me": [bash("touch one"), bash("touch two"), "It is *done*."],
  "with Claude": [
    use("Bash", { command: "touch by-claude", description: "Make it" }),
    use("Bash", { command: "touch never", description: "Make the other" }),
    "Claude is done.",
  ],
};

let scripted;
setup({ furnish, shared: true });
async function furnish(world) {
  scripted = await model(scripts);
  world.configure(`autostart = false\n[agent]\nmodel = "mine/claude-sonnet-4-5"\n[agent.providers.mine]\napi = "anthropic"\nbase_url = "${scripted.url}"\n`);
}
after(() => scripted?.close());

const allow = (card) => card.locator("button.allow");
const deny = (card) => card.getByRole("button", { name: /^(Deny|Decline)/ });

/** A working directory. */
function project(name) {
  const directory = join(world.home, name);
  mkdirSync(directory);
  writeFileSync(join(directory, "notes.txt"), "first line\nsecond line\n");
  return { directory, made: (file) => existsSync(join(directory, file)), notes: () => readFileSync(join(directory, "notes.txt"), "utf8") };
}

/** The card of the request that contains this text and for which an agent waits in a directory. */
async function asked(directory, text) {
  const approval = await eventually(`permission is asked for ${text}`, async () => {
    const { approvals } = await world.api("/api/v1/approvals?state=pending");
    return approvals.find((approval) => approval.cwd === directory && approval.input?.includes(text) && approval.answer != null);
  });
  return cardOf(visitor.page, approval);
}

async function press(button) {
  await ready(button);
  await button.click();
}

async function denyBecause(card, reason) {
  await card.getByRole("button", { name: "Reason…" }).click();
  await card.getByLabel(/Reason/).fill(reason);
  await press(deny(card));
}

test("our own agent does what is allowed, leaves what is denied, and gets the answer to its question", async () => {
  const { directory, made, notes } = project("tidy");
  const { page } = visitor;
  await page.goto(`${world.url}/approvals`);
  const { session_id } = await world.api("/api/v1/sessions", { cwd: directory, name: "tidier", prompt: "Please tidy the notes" });

  const command = await asked(directory, "touch allowed");
  assert.equal((await command.locator("pre.exact").innerText()).trim(), "touch allowed");
  assert.equal(made("allowed"), false, "nothing is done before it is allowed");
  await press(allow(command));

  const edit = await asked(directory, "2nd");
  await edit.locator(".diff-removed", { hasText: "second" }).waitFor();
  await edit.locator(".diff-added", { hasText: "2nd" }).waitFor();
  assert.equal(made("allowed"), true);
  assert.equal(notes(), "first line\nsecond line\n");
  await press(allow(edit));

  const question = await asked(directory, "Which side?");
  assert.equal(notes(), "first line\n2nd line\n");
  await question.getByLabel("right", { exact: true }).check();
  await press(allow(question));

  const last = await asked(directory, "touch denied");
  await denyBecause(last, "Leave it as it is.");
  await last.getByText(/^Denied by a person.*Leave it as it is\./).waitFor();
  await page.goto(`${world.url}/s/${session_id}`);
  await page.getByRole("region", { name: "Conversation" }).getByText("All is tidy.").waitFor();
  assert.equal(made("denied"), false);
  const results = scripted.results("tidy the notes");
  assert.equal(results.length, 4);
  assert.match(results[1], /edited notes\.txt/);
  assert.match(results[2], /right/);
  assert.match(results[3], /Leave it as it is\./);
  await world.api(`/api/v1/sessions/${session_id}/input`, { do: "end" });
});

test("our own agent at a command line is answered in the page of its session", async () => {
  const { directory, made } = project("publish");
  const { page } = visitor;
  const child = world.spawn(["agent", "run", "Please publish it"], "pipe", { cwd: directory });
  let said = "";
  child.stdout.on("data", (piece) => (said += piece));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin.end();
  const session = await eventually("the session is listed", async () =>
    (await world.api("/api/v1/sessions")).sessions.find((session) => session.cwd === directory),
  );
  await page.goto(`${world.url}/s/${session.id}`);
  await denyBecause(await asked(directory, "touch published"), "Not today.");
  const second = await asked(directory, "touch announced");
  assert.equal(made("published"), false);
  await press(allow(second));
  assert.equal(await ended, 0);
  assert.equal(said, "Not published.\n");
  assert.deepEqual([made("published"), made("announced")], [false, true]);
  assert.match(scripted.results("publish it")[0], /Not today\./);
});

test("a session that takes commands is told what to do in its page, and shows no door that leads nowhere", async () => {
  const { directory } = project("told");
  const { page } = visitor;
  const { session_id, run } = await world.api("/api/v1/sessions", { cwd: directory, name: "told", prompt: "Please wait for me" });
  await page.goto(`${world.url}/s/${session_id}`);
  const first = await asked(directory, "touch one");
  const conversation = page.getByRole("region", { name: "Conversation" });
  // The waiting call is marked, and its request is shown only in the card.
  await conversation.locator(".tool-line", { hasText: "touch one" }).getByText("waits for your decision").waitFor();
  assert.equal(await conversation.getByText(/^Permission request: pending/).count(), 0);
  assert.equal(await page.getByRole("link", { name: "Terminal" }).count(), 0);
  assert.equal(await page.getByRole("heading", { name: "Prompt queue" }).count(), 0);
  assert.equal(await page.getByText(/capture attach/).count(), 0);

  await page.getByLabel("Message to the running turn").fill("Rather the *left* one");
  await page.getByRole("button", { name: "Steer" }).click();
  await page.getByText("The agent takes it up at the next step").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Pauses at the next step").waitFor();
  await press(allow(first));
  await page.getByRole("button", { name: "Resume" }).click();
  const second = await asked(directory, "touch two");
  await conversation.getByText("Rather the left one").waitFor();
  await conversation.getByText(/^Permission request: allowed/).waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await second.waitFor({ state: "detached" });
  // The turn is over, so text written now is a prompt.
  await page.getByLabel("Prompt", { exact: true }).fill("And now?");
  await page.getByLabel("Prompt", { exact: true }).press("Control+Enter");
  await conversation.locator("em", { hasText: "done" }).waitFor();
  assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "");

  const session = await world.api(`/api/v1/sessions/${session_id}`);
  const other = await visitor.open(`/terminal/${run ?? session.run_id}`);
  await other.getByRole("heading", { name: "This session has no terminal" }).waitFor();
  await other.getByRole("link", { name: "Open the session" }).click();
  await other.waitForURL(`${world.url}/s/${session_id}`);
  await other.close();
  await world.api(`/api/v1/sessions/${session_id}/input`, { do: "end" });
  await page.getByLabel("Prompt", { exact: true }).waitFor({ state: "detached" });
});

/** The Claude Code program, from an environment variable or the PATH. */
const claude = [process.env.CAPTURE_LIVE_CLAUDE ?? "", ...(process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, "claude"))].find(
  (file) => file !== "" && existsSync(file),
);

test("Claude Code is answered through its hooks", {
  skip: claude === undefined && "Claude Code is not installed: put `claude` on the PATH, or name it in CAPTURE_LIVE_CLAUDE",
}, async () => {
  const { directory, made } = project("claude");
  const { page } = visitor;
  const KEY = "sk-dummy";
  mkdirSync(join(world.home, ".claude"), { recursive: true });
  // Starts it without its initial questions.
  const known = {
    hasCompletedOnboarding: true,
    lastOnboardingVersion: "2.1.328",
    theme: "dark",
    customApiKeyResponses: { approved: [KEY], rejected: [] },
    projects: { [directory]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true, allowedTools: [] } },
  };
  writeFileSync(join(world.home, ".claude.json"), JSON.stringify(known));
  writeFileSync(join(world.home, ".claude/settings.json"), "{}");
  const variables = {
    ANTHROPIC_BASE_URL: scripted.url,
    ANTHROPIC_API_KEY: KEY,
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    PATH: `${join(claude, "..")}${delimiter}${process.env.PATH}`,
  };
  const installed = spawnSync(process.env.CAPTURE_BINARY, ["hooks", "install", "--agent", "claude", "--approver", "--yes"], {
    env: { ...world.environment, ...variables },
    encoding: "utf8",
  });
  assert.equal(installed.status, 0, installed.stderr);

  await page.goto(`${world.url}/approvals`);
  world
    .spawn(["run", "--detach", "--name", "claude", "--", claude, "--permission-mode", "manual", "Make it with Claude"], "ignore", { cwd: directory, variables })
    .stdin.end();
  const first = await asked(directory, "touch by-claude");
  assert.equal(made("by-claude"), false);
  await press(allow(first));
  await denyBecause(await asked(directory, "touch never"), "Once is enough.");
  await eventually("its model is told", () => scripted.results("with Claude").length === 2);
  assert.deepEqual([made("by-claude"), made("never")], [true, false]);
  assert.match(scripted.results("with Claude")[1], /Once is enough\./);
  const session = await eventually("the session is listed", async () =>
    (await world.api("/api/v1/sessions")).sessions.find((session) => session.cwd === directory),
  );
  await page.goto(`${world.url}/s/${session.id}`);
  await page.getByRole("region", { name: "Conversation" }).getByText("Claude is done.").waitFor();
});
