// Rows of a terminal as lines of text.

import { memo } from "preact/compat";
import { classes, colours, Shown } from "../parts/text";
import type { Run } from "../text/ansi";
import type { Cursor, Row } from "./grid";

/** The lines; a line that did not change is not drawn again. */
export function Rows({ lines, cursor = null }: { lines: Row[]; cursor?: Cursor }) {
  return (
    <>
      {lines.map((row, index) => (
        <Line key={index} row={row} column={cursor !== null && cursor.row === index ? cursor.column : -1} />
      ))}
    </>
  );
}

const Line = memo(function Line({ row, column }: { row: Row; column: number }) {
  return (
    <div class="terminal-line">
      {column < 0 ? row.map((run, index) => <Piece key={index} run={run} />) : withCursor(row, column)}
      {row.length === 0 && column < 0 && "\u00a0"}
    </div>
  );
});

function Piece({ run }: { run: Run }) {
  const style = colours(run);
  const names = classes(run);
  if (names === "" && style === undefined) return <Shown text={run.text} />;
  return (
    <span class={names} {...(style === undefined ? {} : { style })}>
      <Shown text={run.text} />
    </span>
  );
}

/** Cells of a character: wide ones take two. */
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const MARK = /\p{M}/u;

function withCursor(row: Row, column: number) {
  const pieces = [];
  let at = 0;
  let placed = false;
  for (const [index, run] of row.entries()) {
    let before = "";
    let under = "";
    let after = "";
    for (const character of run.text) {
      const cells = MARK.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
      if (at <= column && at + cells > column) under += character;
      else if (at < column) before += character;
      else if (under !== "" && cells === 0 && after === "") under += character;
      else after += character;
      at += cells;
    }
    if (before !== "") pieces.push(<Piece key={`${index}a`} run={{ ...run, text: before }} />);
    if (under !== "") {
      placed = true;
      pieces.push(
        <span key={`${index}b`} class="cursor">
          {under}
        </span>,
      );
    }
    if (after !== "") pieces.push(<Piece key={`${index}c`} run={{ ...run, text: after }} />);
  }
  if (!placed) {
    if (column > at) pieces.push(" ".repeat(column - at));
    pieces.push(
      <span key="end" class="cursor">
        {" "}
      </span>,
    );
  }
  return pieces;
}
