// Display names for the API's values.

import type { Confidence, Need, Provider, Source, State } from "../api/routes";

export const AGENTS: Record<Provider, string> = {
  unknown: "Program",
  claude: "Claude Code",
  codex: "Codex",
  gemini: "Gemini CLI",
  pi: "pi",
  capture: "capture agent",
  qwen: "Qwen Code",
  opencode: "opencode",
  aider: "aider",
  crush: "Crush",
  goose: "goose",
  amp: "Amp",
};

export const SOURCES: Record<Source, string> = {
  transcript: "transcript",
  registry: "registry",
  hook: "hook",
  telemetry: "telemetry",
  pty: "terminal",
  input: "input",
  process: "process",
  protocol: "protocol",
  runtime: "agent",
};

/** A state and its reason in words: `Working · command`. */
export const STATES: Record<State, string> = {
  running: "Working",
  waiting: "Waiting for you",
  waiting_approval: "Needs approval",
  idle: "Idle",
  exited: "Exited",
  unknown: "Unknown",
};

export const NEED_WORDS: Record<Need, string> = {
  approval: "Approval",
  question: "Question",
  failure: "Failure",
  stuck: "Stuck",
  prompt: "Prompt",
};

export const CONFIDENCE: Record<Confidence, string> = {
  high: "high confidence",
  medium: "medium confidence",
  low: "low confidence",
};

/** `risky_approval` as `risky approval`. */
export const spaced = (name: string): string => name.replaceAll("_", " ");
