// A separate machine for a test: a home, a server on a free port, and agents that call their hooks like real ones.

import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const RECORDINGS = fileURLToPath(new URL("../../../../fixtures/recordings/", import.meta.url));

/** The program under test. */
export const PROGRAM = process.env.CAPTURE_BINARY ?? "";

/** Waits until a condition holds. It polls, because the condition depends on another process. */
export async function eventually(what, condition, within = 20_000) {
  const end = Date.now() + within;
  for (;;) {
    const found = await condition();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within ${within} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** A machine; `close` stops everything it started. */
export class World {
  constructor(root = mkdtempSync(join(tmpdir(), "cw-"))) {
    this.root = root;
    this.home = join(root, "home");
    this.data = join(root, "d");
    this.children = new Set();
    for (const directory of [this.home, join(root, "config"), join(root, "run")]) mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  get environment() {
    return {
      PATH: process.env.PATH,
      HOME: this.home,
      XDG_CONFIG_HOME: join(this.root, "config"),
      XDG_RUNTIME_DIR: join(this.root, "run"),
      CAPTURE_DATA_DIR: this.data,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
    };
  }

  /** Starts the server and waits until it answers. */
  async serve(...options) {
    this.server = this.spawn(["serve", ...options], "ignore");
    const file = join(this.data, "endpoint.json");
    await eventually("the server answers", async () => {
      if (this.server.exitCode !== null) throw new Error(`the server ended with ${this.server.exitCode}`);
      if (!existsSync(file)) return false;
      try {
        const endpoint = JSON.parse(readFileSync(file, "utf8"));
        if (endpoint.pid !== this.server.pid) return false;
        this.url = endpoint.url;
        return (await fetch(`${this.url}/healthz`)).ok;
      } catch {
        return false;
      }
    });
    this.token = readFileSync(join(this.data, "tokens/owner"), "utf8").trim();
    return this.url;
  }

  /** Kills the server, as a power cut would. */
  async kill() {
    const ended = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill("SIGKILL");
    await ended;
  }

  /** Writes the configuration; call it before the server starts. */
  configure(text) {
    const directory = join(this.root, "config/capture");
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(join(directory, "config.toml"), text, { mode: 0o600 });
  }

  /** Starts the program. */
  spawn(args, output = "pipe", { cwd = this.home, variables = {} } = {}) {
    const child = spawn(PROGRAM, args, { env: { ...this.environment, ...variables }, cwd, stdio: ["pipe", output, output] });
    child.stdin.on("error", () => undefined);
    this.children.add(child);
    child.once("exit", () => this.children.delete(child));
    return child;
  }

  /** Runs the program to completion; returns its output. */
  run(...args) {
    const { status, stdout, stderr } = spawnSync(PROGRAM, args, { env: this.environment, cwd: this.home, encoding: "utf8" });
    if (status !== 0) throw new Error(`${args.join(" ")}: ${status}\n${stdout}${stderr}`);
    return stdout;
  }

  /** Sends a request with the owner's token. */
  async api(path, body, method = body === undefined ? "GET" : "POST") {
    const response = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** Creates a code that pairs a browser or elevates a device. */
  async code(scope, device_id) {
    const { code } = await this.api("/api/v1/pairing", device_id === undefined ? { scope } : { scope, device_id });
    return code;
  }

  /** Replays a recorded session of a real agent: its files and its hooks, in order. Returns the agent's id of the
   * session. */
  async play(recording) {
    const folder = join(RECORDINGS, recording);
    const { home, cwd, provider } = JSON.parse(readFileSync(join(folder, "recording.json"), "utf8"));
    const project = join(this.home, "project");
    mkdirSync(project, { recursive: true });
    const here = (text) => text.replaceAll(home, this.home).replaceAll(cwd, project);
    let session = null;
    for (const line of readFileSync(join(folder, "timeline.jsonl"), "utf8").trim().split("\n")) {
      const step = JSON.parse(line);
      const file = step.path === undefined ? "" : join(this.home, here(step.path));
      if (step.op === "append" || step.op === "write") {
        mkdirSync(dirname(file), { recursive: true });
        if (step.op === "append") appendFileSync(file, here(step.data));
        // A registry entry names a process that does not exist, so the session would count as ended.
        else if (!/\/sessions\/\d+\.json$/.test(file)) writeFileSync(file, here(step.data));
      } else if (step.op === "hook") {
        const payload = JSON.parse(here(JSON.stringify(step.payload)));
        session = payload.session_id;
        await new Agent(this, provider, session, "project").hook(step.event, payload);
      }
    }
    return session;
  }

  /** An agent on this machine. */
  agent(name, session, project = "project") {
    return new Agent(this, name, session, project);
  }

  /** Stops everything and removes the home. */
  async close() {
    // The hosts of runs outlive the server and exit with their programs.
    const { runs } = await this.api("/api/v1/runs").catch(() => ({ runs: [] }));
    for (const { pid } of runs.filter((run) => run.state === "running")) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has exited.
      }
    }
    if (this.server !== undefined && this.server.exitCode === null) spawnSync(PROGRAM, ["serve", "--stop"], { env: this.environment });
    for (const child of this.children) child.kill("SIGKILL");
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** An agent that calls its hooks. */
export class Agent {
  constructor(world, name, session, project) {
    this.world = world;
    this.name = name;
    this.session = session;
    this.cwd = join(world.home, project);
    mkdirSync(this.cwd, { recursive: true });
  }

  /** Calls a hook and waits for it to exit; returns its output to the agent, or nothing. */
  async hook(event, fields = {}, wait = "0") {
    const child = this.world.spawn(["hook", this.name, "--approver", wait]);
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const transcript = this.transcript === undefined ? {} : { transcript_path: this.transcript };
    child.stdin.end(JSON.stringify({ session_id: this.session, cwd: this.cwd, hook_event_name: event, ...transcript, ...fields }));
    await ended;
    return said === "" ? null : JSON.parse(said);
  }

  /** Begins a session with a prompt. */
  async begin(prompt) {
    await this.hook("SessionStart", { source: "startup" });
    await this.hook("UserPromptSubmit", { prompt });
  }

  /** Asks for permission; the promise resolves to the agent's answer. */
  ask(tool, input, wait = "60") {
    return this.hook("PermissionRequest", { tool_name: tool, tool_input: input }, wait);
  }

  /** Writes a Claude Code transcript with these prompts, answers and commands, and a title from the first prompt. */
  transcribe(entries, more = {}) {
    const file = join(this.world.home, ".claude/projects", this.cwd.replaceAll(/[^A-Za-z0-9]/g, "-"), `${this.session}.jsonl`);
    mkdirSync(dirname(file), { recursive: true });
    this.transcript = file;
    let parent = null;
    let at = Date.now() - entries.length * 1000;
    const lines = entries.map((entry, index) => {
      // Lines with the same id count as the same line, even in different files.
      const uuid = `${String(index).padStart(8, "0")}${this.session.slice(8)}`;
      const [type, content] = Object.entries(entry)[0];
      const base = {
        parentUuid: parent,
        isSidechain: false,
        userType: "external",
        cwd: this.cwd,
        sessionId: this.session,
        version: "2.1.328",
        gitBranch: "main",
        uuid,
        timestamp: new Date((at += 1000)).toISOString(),
        ...more,
      };
      parent = uuid;
      const id = `toolu_${this.session.slice(-12)}${String(index).padStart(8, "0")}`;
      const assistant = (content, stop_reason) => ({
        ...base,
        type: "assistant",
        message: {
          id: `msg_${uuid}`,
          type: "message",
          role: "assistant",
          model: "claude-opus-5-5",
          content,
          stop_reason,
          usage: { input_tokens: 10, output_tokens: 20, cache_read_input_tokens: 5, cache_creation_input_tokens: 5 },
        },
      });
      if (type === "prompt") return { ...base, type: "user", message: { role: "user", content } };
      if (type === "answer") return assistant([{ type: "text", text: content }], "end_turn");
      if (type === "bash") return assistant([{ type: "tool_use", id, name: "Bash", input: { command: content } }], "tool_use");
      if (type === "edit") {
        const input = { file_path: join(this.cwd, content), old_string: "a", new_string: "b" };
        return assistant([{ type: "tool_use", id, name: "Edit", input }], "tool_use");
      }
      if (type === "output")
        return {
          ...base,
          type: "user",
          message: {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: `toolu_${this.session.slice(-12)}${String(index - 1).padStart(8, "0")}`, content, is_error: false }],
          },
        };
      throw new Error(`no such entry: ${type}`);
    });
    appendFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }

  /** Waits until the server lists the session; returns it. */
  async known() {
    return eventually(`the server knows ${this.session}`, async () => {
      try {
        return await this.world.api(`/api/v1/sessions/${this.session}`);
      } catch {
        return undefined;
      }
    });
  }

  /** The pending request of this agent: by default, the one for which a hook waits. */
  async pending(is = (approval) => approval.answer === "hook") {
    const { id } = await this.known();
    return eventually("the request is there", async () => {
      const { approvals } = await this.world.api(`/api/v1/approvals?state=pending&session=${id}`);
      return approvals.find(is);
    });
  }

  /** Writes a file in the project. */
  write(name, text) {
    writeFileSync(join(this.cwd, name), text);
  }
}
