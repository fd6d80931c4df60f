// The body of a permission request for users: complete, left to right, with hidden characters as escapes.

import type { Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { OpenApproval } from "../api/routes";
import { CopyButton } from "../parts/copy";
import { Icon } from "../parts/icons";
import { Markdown } from "../parts/markdown";
import { Shown } from "../parts/text";
import type { Line } from "../text/diff";
import { bytes, counted, exactCount, within } from "../text/format";
import { census, lookalikes, visible } from "../text/visible";
import { type FileChange, type Request, readable } from "./request";

type Place = {
  /** The directory of the request: paths below it are shown relative to it. */
  cwd: string | null;
  /** The request's files, as they were when it was made. */
  files?: OpenApproval["files"];
  /** Whether nobody decides about it any more. */
  past?: boolean;
};

/** The content of a request, other than questions, which have their own form. `unfolded` contains the files whose
 * lines the user has shown in full. */
export function RequestBody({ request, unfolded, cwd, files = [], past = false }: { request: Request; unfolded: Signal<ReadonlySet<number>> } & Place) {
  const { body, rest, said } = request;
  return (
    <div class="request-body">
      {said !== null && (
        <p class="said">
          <span class="muted">The agent says:</span> <Shown text={said} strictness="exact" />
        </p>
      )}
      {body.kind === "command" && <CommandText text={body.text} />}
      {body.kind === "command" && !body.whole && <p class="muted small">capture does not know every byte of this command.</p>}
      {body.kind === "changes" &&
        body.files.map((file, index) => (
          <Changes
            key={index}
            file={file}
            cwd={cwd}
            before={files.find(({ path }) => path === file.path)}
            whole={!isFolded(file, index, unfolded.value)}
            onUnfold={() => (unfolded.value = new Set([...unfolded.value, index]))}
          />
        ))}
      {body.kind === "plan" && (
        <div class="plan">
          <Markdown text={body.text} whole />
        </div>
      )}
      {body.kind === "url" && <CommandText text={body.url} />}
      {body.kind === "excerpt" && <Excerpt {...body} />}
      {body.kind === "other" && body.text !== "" && <CommandText text={body.text} />}
      {body.kind === "other" && body.text !== "" && !body.whole && <p class="muted small">This is what the agent’s screen shows; there may be more.</p>}
      <Rest rest={rest} />
      {body.kind !== "excerpt" && <Census request={request} past={past} />}
    </div>
  );
}

/** The fields of a request that have no special display. */
export function Rest({ rest }: Pick<Request, "rest">) {
  if (rest.length === 0) return null;
  return (
    <dl class="rest">
      {rest.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Shown text={name} strictness="exact" />
          </dt>
          <dd>
            <Shown text={value} strictness="exact" />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A text that would be run or fetched: every byte, wrapped, never cut. */
function CommandText({ text, label = "what would run" }: { text: string; label?: string }) {
  return (
    <div class="exact-box">
      <pre class="exact" tabIndex={0} aria-label={label}>
        <Shown text={text} strictness="exact" />
      </pre>
      <CopyButton text={text} label="Copy exactly" />
    </div>
  );
}

/** A request that is too long to be stored completely: its beginning and end, and the size of the missing part. */
function Excerpt({ beginning, end, kept, bytes }: { beginning: string; end: string; kept: number; bytes: number }) {
  const warning = (
    <p class="census census-warns">
      <Icon name="warning" size={14} />
      Not all of it is shown: {exactCount(kept)} of {exactCount(bytes)} bytes. It cannot be allowed here. Read all of it in the agent and answer there, or deny
      it.
    </p>
  );
  return (
    <>
      {warning}
      <CommandText text={beginning} label="the beginning of what would run" />
      <p class="muted">… {exactCount(bytes - kept)} bytes are not shown …</p>
      <CommandText text={end} label="the end of what would run" />
      {warning}
    </>
  );
}

/** Describes what is not visible at a glance: hidden characters anywhere, and how long the text is that would run. In a
 * `past` request, letters of other scripts are mentioned only if they look like Latin ones. */
function Census({ request, past }: { request: Request; past: boolean }) {
  const all = census(readable(request));
  const { hidden } = all;
  const foreign = past ? lookalikes(readable(request)) : all.foreign;
  const { lines, characters } = request.body.kind === "command" ? census(request.body.text) : all;
  const warns = hidden > 0 || foreign > 0;
  if (!warns && characters < 400 && lines < 8) return null;
  return (
    <p class={warns ? "census census-warns" : "census"}>
      {warns && <Icon name="warning" size={14} />}
      {[
        hidden > 0 ? counted(hidden, "hidden character") : "",
        foreign > 0 ? (past ? counted(foreign, "look-alike character") : `${counted(foreign, "character")} outside ASCII`) : "",
        counted(lines, "line"),
        counted(characters, "character"),
      ]
        .filter((part) => part !== "")
        .join(" · ")}
    </p>
  );
}

/** Number of diff lines shown at first; the rest is counted and shown on a press. */
const FIRST = 400;

const isFolded = (file: FileChange, index: number, unfolded: ReadonlySet<number>): boolean => file.lines.length > FIRST && !unfolded.has(index);

/** Number of lines and characters that a request's box shows on a phone without scrolling. */
const VISIBLE_LINES = 12;
const VISIBLE_CHARACTERS = 480;
/** Number of diff lines that a box shows without scrolling. */
const VISIBLE_CHANGES = 20;

/** Whether the text that would run is so long that its end may be below the edge of its box. */
export function isLong(request: Request): boolean {
  // The answers to questions are below their text.
  if (request.body.kind === "questions") return false;
  // Measured as displayed: an unprintable character takes as much room as its escape.
  const { lines, characters } = census(visible(readable(request), "exact"));
  const changes = request.body.kind === "changes";
  return lines > (changes ? VISIBLE_CHANGES : VISIBLE_LINES) || characters > (changes ? 4 : 1) * VISIBLE_CHARACTERS;
}

/** Whether part of the request is not displayed until the user unfolds it. */
export const hasFolded = ({ body }: Request, unfolded: ReadonlySet<number>): boolean =>
  body.kind === "changes" && body.files.some((file, index) => isFolded(file, index, unfolded));

/** A file of a request. */
export function Path({ path, cwd }: { path: string; cwd: string | null }) {
  return (
    <span class="path" title={visible(path, "exact")}>
      <Shown text={within(path, cwd)} strictness="exact" />
    </span>
  );
}

/** A file's size when the request was made. */
export const sizeOf = ({ size }: { size?: number | null }): string => (size == null ? "does not exist" : bytes(size));

type ChangesProps = { file: FileChange; cwd: string | null; before: { size?: number | null } | undefined; whole: boolean; onUnfold: () => void };

function Changes({ file, cwd, before, whole, onUnfold }: ChangesProps) {
  const added = file.lines.filter((line) => line.kind === "added").length;
  const removed = file.lines.filter((line) => line.kind === "removed").length;
  // Kept between renders: tens of thousands of lines take seconds to compare.
  const parts = useMemo(() => partsOf(whole ? file.lines : file.lines.slice(0, FIRST)), [file.lines, whole]);
  return (
    <figure class="changes">
      <figcaption>
        <Icon name="file" size={14} />
        <Path path={file.path} cwd={cwd} />
        {file.replaces === true ? (
          <span class="muted">
            {before !== undefined && before.size == null ? "a new file" : "the whole file"}, {counted(added, "line")}
            {before?.size != null && `, replaces ${bytes(before.size)}`}
          </span>
        ) : (
          <>
            {before !== undefined && <span class="muted">{sizeOf(before)}</span>}
            <span class="plus">+{added}</span>
            <span class="minus">−{removed}</span>
          </>
        )}
      </figcaption>
      <div class="diff" tabIndex={0} role="region" aria-label={`changes of ${visible(file.path)}`}>
        {parts}
      </div>
      {!whole && (
        <p class="census census-warns">
          <Icon name="warning" size={14} />
          {exactCount(FIRST)} of {exactCount(file.lines.length)} lines are shown.
          <button type="button" class="button small" onClick={onUnfold}>
            Show all {exactCount(file.lines.length)} lines
          </button>
        </p>
      )}
    </figure>
  );
}

/** Lines per part of a diff. The browser lays out only the parts in view. */
const PART = 200;

function partsOf(lines: readonly Line[]) {
  const starts = Array.from({ length: Math.ceil(lines.length / PART) }, (_, part) => part * PART);
  return starts.map((start) => {
    const part = lines.slice(start, start + PART);
    return (
      <div key={start} class="diff-part" style={{ "--lines": part.length }}>
        {part.map((line, index) => (
          <DiffLine key={index} line={line} />
        ))}
      </div>
    );
  });
}

const SIGNS = { added: "+", removed: "−", same: " ", note: "·" } as const;

function DiffLine({ line }: { line: Line }) {
  return (
    <div class={`diff-line diff-${line.kind}`}>
      <span class="diff-number" aria-hidden="true">
        {line.before ?? ""}
      </span>
      <span class="diff-number" aria-hidden="true">
        {line.after ?? ""}
      </span>
      <span class="diff-sign">
        <span aria-hidden="true">{SIGNS[line.kind]}</span>
        {line.kind !== "same" && <span class="visually-hidden">{line.kind}: </span>}
      </span>
      <span class="diff-text">
        <Shown text={line.text} strictness="exact" />
      </span>
    </div>
  );
}
