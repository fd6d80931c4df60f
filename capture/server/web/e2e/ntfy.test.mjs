// ntfy messages with buttons: pressing a button decides only the request it was made for, once.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, beforeEach, test } from "node:test";
import { cardOf, ready, Visitor } from "./browser.mjs";
import { browser, setup, world } from "./setup.mjs";
import { eventually } from "./world.mjs";

let ntfy;
const published = [];
/** A free port. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

setup({ furnish });
async function furnish(world) {
  ntfy = createServer(async (request, answer) => {
    let body = "";
    for await (const piece of request) body += piece;
    published.push({ path: request.url, method: request.method, message: JSON.parse(body) });
    answer.end("{}");
  });
  await new Promise((resolve) => ntfy.listen(0, "127.0.0.1", resolve));
  const [port, own] = [ntfy.address().port, await freePort()];
  world.configure(`autostart = false
[notify]
page_url = "http://127.0.0.1:${own}"
allow_hosts = ["127.0.0.1:${port}"]
group_at = 1000
per_minute = 600

[[notify.channels]]
type = "ntfy"
name = "phone"
server = "http://127.0.0.1:${port}"
topic = "an-unguessable-topic"
buttons = true
`);
  return ["--listen", `127.0.0.1:${own}`];
}
after(() => ntfy?.close().closeAllConnections());

let agent;
let count = 0;
beforeEach(async () => {
  count += 1;
  agent = world.agent("claude", `5a6b7c8d-0000-4000-8000-0000000007${String(count).padStart(2, "0")}`, `phone${count}`);
  await agent.begin("Do it");
});

const decision = (said) => said.hookSpecificOutput.decision;
/** The message about a request. */
const told = (approval) => eventually("a message is published", () => published.find(({ message }) => message.click?.endsWith(`#${approval.id}`))?.message);
const button = (message, label) => message.actions.find((action) => action.label === label);
/** Presses a button, as the application on the phone does. */
const press = ({ url, method, headers, body }) => fetch(url, { method, headers, body });

test("a request is published with a link and two buttons, and without a token of the server", async () => {
  const answered = agent.ask("Bash", { command: "touch told" });
  const approval = await agent.pending();
  const message = await told(approval);
  const { path, method } = published.at(-1);
  assert.deepEqual([path, method, message.topic], ["/", "POST", "an-unguessable-topic"]);
  assert.match(message.title, /touch told/);
  assert.equal(message.click, `${world.url}/approvals#${approval.id}`);
  assert.deepEqual(
    message.actions.map(({ action, label, url, method }) => [action, label, url, method]),
    [
      ["http", "Allow once", `${world.url}/api/v1/answers`, "POST"],
      ["http", "Deny", `${world.url}/api/v1/answers`, "POST"],
    ],
  );
  const bodies = message.actions.map(({ body }) => Object.keys(JSON.parse(body)).join());
  assert.deepEqual(bodies, ["token", "token"]);
  assert.ok(!JSON.stringify(published).includes(world.token), "no token of the server is in a message");

  const visitor = await Visitor.paired(browser, world);
  await visitor.page.goto(message.click);
  const card = cardOf(visitor.page, approval);
  await eventually("the card has the focus", () => card.evaluate((element) => document.activeElement === element));
  // The page shows the button's decision.
  assert.equal((await press(button(message, "Allow once"))).status, 200);
  assert.deepEqual(decision(await answered), { behavior: "allow" });
  await card.getByText(/^Allowed by a person/).waitFor();
  await visitor.close();
});

test("a button decides once, and ends the other one", async () => {
  const first = agent.ask("Bash", { command: "touch first" });
  const approval = await agent.pending();
  const message = await told(approval);
  assert.equal((await press(button(message, "Deny"))).status, 200);
  assert.equal(decision(await first).behavior, "deny");
  for (const label of ["Deny", "Allow once"]) {
    const refused = await press(button(message, label));
    assert.deepEqual([refused.status, (await refused.json()).error.code], [410, "code_expired"], label);
  }
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "denied");

  // The same request, sent again, is a new request.
  const second = agent.ask("Bash", { command: "touch first" });
  const again = await agent.pending();
  assert.notEqual(again.id, approval.id);
  const refused = await press(button(message, "Allow once"));
  assert.equal(refused.status, 410);
  assert.equal((await world.api(`/api/v1/approvals/${again.id}`)).state, "pending");
  assert.equal((await press(button(await told(again), "Allow once"))).status, 200);
  assert.deepEqual(decision(await second), { behavior: "allow" });
});

test("a button changes nothing once the page has decided", async () => {
  const answered = agent.ask("Bash", { command: "touch decided" });
  const approval = await agent.pending();
  const message = await told(approval);
  const visitor = await Visitor.paired(browser, world);
  const page = await visitor.open("/approvals");
  const deny = cardOf(page, approval).getByRole("button", { name: "Deny" });
  await ready(deny);
  await deny.click();
  assert.equal(decision(await answered).behavior, "deny");
  const refused = await press(button(message, "Allow once"));
  const { error } = await refused.json();
  assert.deepEqual([refused.status, error.details.state, error.details.decided_by], [409, "denied", "person"]);
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "denied");
  await visitor.close();
});

test("a button is refused when what it would allow has changed", async () => {
  agent.write("a.sh", "echo one\n");
  const answered = agent.ask("Bash", { command: "sh a.sh" });
  const approval = await agent.pending();
  const message = await told(approval);
  agent.write("a.sh", "echo something else\n");
  const refused = await press(button(message, "Allow once"));
  assert.equal(refused.status, 409);
  assert.notEqual((await world.api(`/api/v1/approvals/${approval.id}`)).state, "allowed");
  // Neither button is valid for the changed request; the user must look at it.
  assert.equal((await press(button(message, "Deny"))).status, 410);
  const { revision } = await world.api(`/api/v1/approvals/${approval.id}`);
  await world.api(`/api/v1/approvals/${approval.id}/decision`, { decision: "deny", revision });
  assert.equal(decision(await answered).behavior, "deny");
});

test("a button is refused when the agent does not wait any more", async () => {
  const answered = agent.ask("Bash", { command: "touch late" }, "3");
  const approval = await agent.pending();
  const message = await told(approval);
  assert.equal(await answered, null, "the agent asks its user itself");
  const refused = await press(button(message, "Allow once"));
  assert.equal(refused.status, 409);
  assert.notEqual((await world.api(`/api/v1/approvals/${approval.id}`)).state, "allowed");
});

test("a message that does not show the whole request cannot allow it", async () => {
  for (const [tool, input] of [
    ["Bash", { command: `echo ${"a long line ".repeat(40)}; touch hidden` }],
    ["Bash", { command: "echo one\ntouch two" }],
    ["Bash", { command: "touch told", run_in_background: true }],
    ["Bash", { command: "touch t\u0456ld" }],
    ["Edit", { file_path: `${agent.cwd}/a.txt`, old_string: "one", new_string: "two" }],
  ]) {
    const answered = agent.ask(tool, input);
    const message = await told(await agent.pending());
    assert.deepEqual(
      message.actions.map(({ label }) => label),
      ["Deny"],
      JSON.stringify(input).slice(0, 60),
    );
    assert.equal((await press(button(message, "Deny"))).status, 200);
    assert.equal(decision(await answered).behavior, "deny");
  }
});

test("no token but those of buttons is good, and a question has none", async () => {
  const answered = agent.ask("AskUserQuestion", { questions: [{ question: "Which?", options: [{ label: "A" }, { label: "B" }] }] });
  const approval = await agent.pending();
  assert.equal((await told(approval)).actions, undefined);
  const url = `${world.url}/api/v1/answers`;
  const headers = { "Content-Type": "application/json" };
  for (const token of ["", "0".repeat(48), world.token, approval.id]) {
    const refused = await press({ url, method: "POST", headers, body: JSON.stringify({ token }) });
    assert.ok(refused.status === 410 || refused.status === 400, `${token.slice(0, 4)}: ${refused.status}`);
  }
  // A page of another origin cannot press a button either.
  const foreign = await press({ url, method: "POST", headers: { ...headers, Origin: "https://evil.test" }, body: '{"token":"x"}' });
  assert.equal(foreign.status, 403);
  assert.equal((await world.api(`/api/v1/approvals/${approval.id}`)).state, "pending");
  const { revision } = await world.api(`/api/v1/approvals/${approval.id}`);
  await world.api(`/api/v1/approvals/${approval.id}/decision`, { decision: "deny", revision });
  assert.equal(decision(await answered).behavior, "deny");
});
