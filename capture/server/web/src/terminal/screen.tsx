// A terminal's screen in a pane, as large as the width allows.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Grid } from "./grid";
import { Rows } from "./rows";

/** Width of a character, as a fraction of the font size. */
export const CELL = 0.602;

/** The rows, and the content above them. */
export function Screen({ grid, large, children }: { grid: Grid; large: boolean; children?: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  // The text is as large as the width allows, but never too small to read; then the pane scrolls.
  useLayoutEffect(() => {
    const target = element.current;
    const around = target?.parentElement;
    if (target == null || around == null) return;
    const fit = (): void => {
      const size = large ? 15 : Math.max(7, Math.min(15, (around.clientWidth - 24) / (grid.columns * CELL)));
      target.style.setProperty("--cell", `${size}px`);
    };
    const observer = new ResizeObserver(fit);
    observer.observe(around);
    fit();
    return () => observer.disconnect();
  }, [grid.columns, large]);
  return (
    <div ref={element} class="terminal-screen">
      {children}
      <Rows lines={grid.lines} cursor={grid.cursor} />
    </div>
  );
}
