// Parses the input of a permission request: a command, a diff, a question, a plan. Fields that have no special display
// are listed next to it, so that the user sees everything a decision covers.

import type { OpenApproval } from "../api/routes";
import { difference, type Line, patch } from "../text/diff";

export type Option = { label: string; description: string | null };
export type Question = { question: string; header: string | null; options: Option[]; several: boolean };
/** `replaces`: the lines are the whole new file, whatever it contained before. */
export type FileChange = { path: string; lines: Line[]; replaces?: boolean };

export type Body =
  | { kind: "command"; text: string; whole: boolean }
  | { kind: "changes"; files: FileChange[] }
  | { kind: "questions"; questions: Question[] }
  | { kind: "plan"; text: string }
  | { kind: "url"; url: string }
  | { kind: "excerpt"; beginning: string; end: string; kept: number; bytes: number }
  | { kind: "other"; text: string; whole: boolean };

/** The body of a request, and the rest of its input as names and values. */
export type Request = { body: Body; rest: [string, string][]; said: string | null };

type Fields = Record<string, unknown>;

/** The fields of an approval from which the body is parsed. */
export type Source = Pick<OpenApproval, "kind" | "input" | "command" | "excerpt" | "exact" | "paths" | "url" | "subject" | "question">;

/** Parses a request. */
export function request(approval: Source): Request {
  const fields = parsed(approval.input ?? null);
  const used = new Set<string>();
  const body = bodyOf(approval, fields ?? {}, used);
  // For other tools, the description is an ordinary argument.
  const said = approval.kind === "command" && typeof fields?.["description"] === "string" ? fields["description"] : null;
  if (said !== null) used.add("description");
  // A number that this page cannot represent exactly: show the input as received.
  if (fields !== null && !isReadExactly(approval.input ?? "", fields)) return { body, rest: [["input", approval.input ?? ""]], said };
  const rest = Object.entries(fields ?? {})
    .filter(([name, value]) => !used.has(name) && value !== null && value !== undefined)
    .map(([name, value]): [string, string] => [name, shown(value)]);
  if (body.kind === "questions") rest.push(...besides(fields ?? {}));
  return { body, rest, said };
}

/** Whether every number of an input is written exactly as it was parsed. */
function isReadExactly(input: string, value: unknown): boolean {
  if (typeof value === "number") return input.split(/[^\d.eE+-]+/).includes(String(value)) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return typeof value !== "object" || value === null || Object.values(value).every((part) => isReadExactly(input, part));
}

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 1));

/** The fields of questions and options that have no special display. */
function besides(fields: Fields): [string, string][] {
  const more = (value: unknown, of: string, known: string[]): [string, string][] =>
    Object.entries((typeof value === "object" && value) || {})
      .filter(([name]) => !known.includes(name))
      .map(([name, value]) => [`${of}, ${name}`, shown(value)]);
  return (fields["questions"] as Fields[]).flatMap((question, index) => {
    const of = `question ${index + 1}`;
    const options = Array.isArray(question["options"]) ? question["options"] : [];
    return [
      ...more(question, of, ["question", "header", "options", "multiSelect"]),
      ...options.flatMap((option, index) =>
        more(option, `${of}, option ${index + 1}`, typeof (option as Fields | null)?.["description"] === "string" ? ["label", "description"] : ["label"]),
      ),
    ];
  });
}

function parsed(input: string | null): Fields | null {
  if (input === null) return null;
  try {
    const value: unknown = JSON.parse(input);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
  } catch {
    return null;
  }
}

function bodyOf(approval: Source, fields: Fields, used: Set<string>): Body {
  const text = (...names: string[]): string | null => {
    for (const name of names) {
      const value = fields[name];
      if (typeof value === "string") {
        used.add(name);
        return value;
      }
    }
    return null;
  };
  if (approval.excerpt != null) {
    const { beginning, end, bytes } = approval.excerpt;
    const kept = new TextEncoder().encode(beginning + end).length;
    return { kind: "excerpt", beginning, end, kept, bytes };
  }
  const questions = approval.kind === "question" ? questionsOf(fields) : null;
  if (questions !== null) {
    used.add("questions");
    return { kind: "questions", questions };
  }
  if (approval.kind === "plan") {
    const plan = text("plan") ?? approval.subject ?? null;
    if (plan !== null) return { kind: "plan", text: plan };
  }
  if (approval.command != null) {
    const command = text("command", "cmd");
    if (command !== null && command !== approval.command) used.delete("command");
    if (Array.isArray(fields["command"])) used.delete("command");
    return { kind: "command", text: approval.command, whole: approval.exact };
  }
  // The fields of another tool may look like those of an edit.
  const files = approval.kind === "edit" || approval.kind === "write" ? changes(approval, fields, text, used) : [];
  if (files.length > 0) return { kind: "changes", files };
  if (approval.url != null) {
    if (fields["url"] === approval.url) used.add("url");
    return { kind: "url", url: approval.url };
  }
  const input = approval.input ?? null;
  if (input !== null && Object.keys(fields).length === 0) return { kind: "other", text: input, whole: true };
  // The fields contain the complete input.
  if (input !== null) return { kind: "other", text: "", whole: true };
  const seen = [approval.question, approval.subject].filter((part): part is string => typeof part === "string" && part !== "");
  return { kind: "other", text: seen.join("\n"), whole: false };
}

function changes(approval: Source, fields: Fields, text: (...names: string[]) => string | null, used: Set<string>): FileChange[] {
  const edits = fields["edits"];
  const patchText =
    typeof fields["patch"] === "string"
      ? text("patch")
      : typeof fields["input"] === "string" && fields["input"].includes("*** Begin Patch")
        ? text("input")
        : null;
  if (patchText !== null) return [{ path: (approval.paths ?? []).join(", "), lines: patch(patchText) }];
  const path = (): string => text("file_path", "filePath", "path", "notebook_path") ?? approval.paths?.[0] ?? "";
  const pairs = Array.isArray(edits) ? edits.map(plainEdit) : [];
  if (pairs.length > 0 && pairs.every((pair) => pair !== null)) {
    used.add("edits");
    const of = path();
    return pairs.map(([before, after]) => ({ path: of, lines: difference(before, after) }));
  }
  // A list that cannot be parsed is shown as received, whatever else looks like an edit.
  if (Array.isArray(edits) && edits.length > 0) return [];
  if (one(fields, BEFORE) !== null && one(fields, AFTER) !== null) {
    const of = path();
    return [{ path: of, lines: difference(text(...BEFORE) ?? "", text(...AFTER) ?? "") }];
  }
  const content = text("content", "file_text");
  if (content !== null) return [{ path: path(), lines: difference("", content), replaces: true }];
  // A notebook cell; other fields specify the operation.
  const cell = text("new_source");
  if (cell !== null) return [{ path: path(), lines: difference("", cell) }];
  return [];
}

const BEFORE = ["old_string", "oldString", "old_str"];
const AFTER = ["new_string", "newString", "new_str"];
const one = (fields: Fields, names: string[]): string | null => {
  const name = names.find((name) => typeof fields[name] === "string");
  return name === undefined ? null : (fields[name] as string);
};

/** The old and new text of an entry in a list of edits, for which our own agent uses shorter names. An edit with any
 * other field is shown as received, so that nothing is lost. */
function plainEdit(value: unknown): [string, string] | null {
  if (typeof value !== "object" || value === null) return null;
  const edit = value as Fields;
  const [before, after] = [one(edit, [...BEFORE, "old"]), one(edit, [...AFTER, "new"])];
  if (before === null || after === null || Object.values(edit).filter((value) => value !== false).length !== 2) return null;
  return [before, after];
}

function questionsOf(fields: Fields): Question[] | null {
  const list = fields["questions"];
  if (!Array.isArray(list) || list.length === 0) return null;
  const questions = list.map((entry: unknown): Question | null => {
    if (typeof entry !== "object" || entry === null) return null;
    const { question, header, options, multiSelect } = entry as Fields;
    if (typeof question !== "string") return null;
    const offered = Array.isArray(options) ? options : [];
    return {
      question,
      header: typeof header === "string" ? header : null,
      several: multiSelect === true,
      options: offered.map((option: unknown): Option => {
        if (typeof option === "string") return { label: option, description: null };
        const { label, description } = (option ?? {}) as Fields;
        return { label: String(label ?? ""), description: typeof description === "string" ? description : null };
      }),
    };
  });
  return questions.every((question) => question !== null) ? questions : null;
}

/** All text of a request that the user reads, for counting hidden characters. */
export function readable({ body, rest, said }: Request): string {
  const pieces = [said ?? "", ...rest.flat()];
  switch (body.kind) {
    case "command":
    case "plan":
    case "other":
      pieces.unshift(body.text);
      break;
    case "url":
      pieces.unshift(body.url);
      break;
    case "excerpt":
      pieces.unshift(body.beginning, body.end);
      break;
    case "changes":
      for (const file of body.files) pieces.push(file.path, ...file.lines.map((line) => line.text));
      break;
    case "questions":
      for (const { question, header, options } of body.questions)
        pieces.push(header ?? "", question, ...options.flatMap(({ label, description }) => [label, description ?? ""]));
      break;
  }
  return pieces.filter((piece) => piece !== "").join("\n");
}

/** Whether two requests are equal, so that one decision can cover both. */
export const sameRequest = (left: OpenApproval, right: OpenApproval): boolean =>
  left.provider === right.provider && left.tool === right.tool && left.cwd === right.cwd && left.input === right.input && left.command === right.command;
