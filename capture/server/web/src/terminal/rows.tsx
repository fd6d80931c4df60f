// Rows of a terminal as lines of text.

import { memo } from "preact/compat";
import { classes, Shown } from "../parts/text";
import type { Run } from "../text/ansi";
import { cells, held } from "./cells";
import { colours } from "./colours";
import type { Cursor, Row } from "./grid";

/** The lines; unchanged lines are not drawn again. */
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
  const style = colours(run, run.text);
  const names = classes(run);
  const text = held(run.text).map((part, index) =>
    part.cells === null ? (
      <Shown key={index} text={part.text} />
    ) : (
      <span key={index} class={`held held-${part.cells}`}>
        <Shown text={part.text} />
      </span>
    ),
  );
  if (names === "" && style === null) return <>{text}</>;
  return (
    <span class={names} {...(style === null ? {} : { style })}>
      {text}
    </span>
  );
}

function withCursor(row: Row, column: number) {
  const pieces = [];
  let at = 0;
  let placed = false;
  for (const [index, run] of row.entries()) {
    let before = "";
    let under = "";
    let after = "";
    for (const character of run.text) {
      const count = cells(character);
      if (at <= column && at + count > column) under += character;
      else if (at < column) before += character;
      else if (under !== "" && count === 0 && after === "") under += character;
      else after += character;
      at += count;
    }
    if (before !== "") pieces.push(<Piece key={`${index}a`} run={{ ...run, text: before }} />);
    if (under !== "") {
      placed = true;
      pieces.push(
        <span key={`${index}b`} class="cursor">
          <Piece run={{ text: under, fg: null, bg: null, flags: 0 }} />
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
