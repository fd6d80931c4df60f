// A list of any length: only rows near the window are elements. The page scrolls the list, or the ancestor with
// `data-scroller` does. Rows are measured; if a measurement changes heights above the window, the list is scrolled by
// the difference, so that nothing moves for the reader.

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Heights } from "./heights";

/** Distance beyond the window within which rows are kept, pixels. */
const MARGIN = 700;

/** The element or page that scrolls a list. */
class Scroller {
  private readonly root: HTMLElement | null;

  constructor(list: HTMLElement | null) {
    this.root = list?.closest<HTMLElement>("[data-scroller]") ?? null;
  }

  get target(): HTMLElement | Window {
    return this.root ?? window;
  }

  get height(): number {
    return this.root?.clientHeight ?? innerHeight;
  }

  /** Distance of the list's top above the window's; negative if it is below. */
  hidden(list: HTMLElement): number {
    return (this.root?.getBoundingClientRect().top ?? 0) - list.getBoundingClientRect().top;
  }

  get atEnd(): boolean {
    const page = this.root ?? document.documentElement;
    const top = this.root?.scrollTop ?? scrollY;
    return page.scrollHeight - (top + this.height) < 48;
  }

  by(top: number): void {
    (this.root ?? window).scrollBy({ top, behavior: "instant" });
  }

  toEnd(): void {
    const page = this.root ?? document.documentElement;
    (this.root ?? window).scrollTo({ top: page.scrollHeight, behavior: "instant" });
  }
}

/** The operations of a list for its view. */
export type Handle = { reveal: (index: number, where?: "start" | "center" | "end") => void; toEnd: () => void };

type Props = {
  count: number;
  /** Estimated height of a row until it is measured, pixels. */
  estimate: number;
  keyOf: (index: number) => string;
  /** Renders a row, given its measured or estimated height. */
  render: (index: number, height: number) => ComponentChildren;
  /** Called with the first and last rendered row. */
  onRange?: (first: number, last: number) => void;
  /** Whether to keep the end in view when it grows while visible. */
  follow?: boolean;
  /** Called when the end comes into view or leaves it. */
  onEnd?: (atEnd: boolean) => void;
  handle?: (handle: Handle) => void;
  role?: "list" | "none";
  label?: string;
  class?: string;
};

export function VirtualList({ count, estimate, keyOf, render, onRange, onEnd, follow = false, handle, role = "list", label, class: name }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const heights = useMemo(() => new Heights(estimate), [estimate]);
  const [range, setRange] = useState<[number, number]>([0, Math.min(count, 20)]);
  const [, redraw] = useState(0);
  const anchor = useRef({ index: 0, atEnd: follow, target: -1, where: "start" as "start" | "center" | "end" });
  const scroller = useRef(new Scroller(null));
  heights.resize(count);

  const look = useCallback(() => {
    const element = list.current;
    if (element === null) return;
    const hidden = scroller.current.hidden(element);
    const first = heights.at(Math.max(0, hidden - MARGIN));
    const last = heights.at(Math.max(0, hidden + scroller.current.height + MARGIN)) + 1;
    anchor.current.index = heights.at(Math.max(0, hidden + 40));
    setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
  }, [heights]);

  useLayoutEffect(() => {
    scroller.current = new Scroller(list.current);
    let scheduled = 0;
    const later = (): void => {
      if (scheduled === 0) {
        scheduled = requestAnimationFrame(() => {
          scheduled = 0;
          const { atEnd } = scroller.current;
          if (atEnd !== anchor.current.atEnd) onEnd?.(atEnd);
          anchor.current.atEnd = atEnd;
          look();
        });
      }
    };
    // Scrolling by hand stops scrolling to a link's target.
    const byHand = (): void => {
      anchor.current.target = -1;
    };
    const { target } = scroller.current;
    const hands = ["wheel", "touchmove", "keydown", "pointerdown"];
    target.addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later, { passive: true });
    for (const kind of hands) target.addEventListener(kind, byHand, { passive: true });
    look();
    return () => {
      cancelAnimationFrame(scheduled);
      target.removeEventListener("scroll", later);
      removeEventListener("resize", later);
      for (const kind of hands) target.removeEventListener(kind, byHand);
    };
  }, [look]);

  const place = useCallback((): void => {
    const { target, where } = anchor.current;
    const element = list.current;
    if (target < 0 || element === null) return;
    // A row may be higher than the window; then it marks the part to show.
    const inner = element.querySelector<HTMLElement>(`[data-index="${target}"] [data-target]`);
    if (inner !== null) {
      scroller.current.by(-scroller.current.hidden(inner) - scroller.current.height / 4);
      return;
    }
    const room = scroller.current.height - heights.get(target);
    const shift = where === "start" ? 24 : where === "center" ? Math.max(24, room / 2) : room - 24;
    scroller.current.by(heights.top(target) - shift - scroller.current.hidden(element));
  }, [heights]);

  const observer = useMemo(() => {
    if (typeof ResizeObserver === "undefined") return null;
    return new ResizeObserver((entries) => {
      let above = 0;
      let any = false;
      for (const entry of entries) {
        const element = entry.target as HTMLElement;
        if (!element.isConnected) continue;
        const index = Number(element.dataset["index"]);
        const change = heights.set(index, entry.borderBoxSize[0]?.blockSize ?? element.offsetHeight);
        if (change !== 0) any = true;
        if (index < anchor.current.index) above += change;
      }
      if (!any) return;
      if (anchor.current.target >= 0) place();
      else if (follow && anchor.current.atEnd) scroller.current.toEnd();
      else if (Math.abs(above) >= 1) scroller.current.by(above);
      redraw((count) => count + 1);
      look();
    });
  }, [heights, follow]);
  useEffect(() => () => observer?.disconnect(), [observer]);

  useLayoutEffect(() => {
    if (anchor.current.target >= 0) place();
    else if (follow && anchor.current.atEnd) scroller.current.toEnd();
    look();
  }, [count]);

  useEffect(() => {
    handle?.({
      reveal: (index, where = "start") => {
        Object.assign(anchor.current, { target: index, where, index, atEnd: false });
        place();
        look();
      },
      toEnd: () => {
        Object.assign(anchor.current, { target: -1, atEnd: true });
        scroller.current.toEnd();
      },
    });
  }, [handle, place, look]);

  const first = Math.min(range[0], Math.max(0, count - 1));
  const last = Math.min(range[1], count);
  useEffect(() => onRange?.(first, last), [first, last, onRange]);

  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <Measured
        key={keyOf(index)}
        index={index}
        height={heights.get(index)}
        observer={observer}
        render={render}
        role={role === "list" ? "listitem" : undefined}
        count={count}
      />,
    );
  }
  const before = heights.top(first);
  const after = Math.max(0, heights.total() - heights.top(last));
  return (
    <div ref={list} class={`virtual ${name ?? ""}`} {...(role === "list" ? { role, "aria-label": label } : {})}>
      <div style={{ height: `${before}px` }} aria-hidden="true" />
      {rows}
      <div style={{ height: `${after}px` }} aria-hidden="true" />
    </div>
  );
}

type RowProps = {
  index: number;
  height: number;
  observer: ResizeObserver | null;
  render: (index: number, height: number) => ComponentChildren;
  role: "listitem" | undefined;
  count: number;
};

function Measured({ index, height, observer, render, role, count }: RowProps) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const row = element.current;
    if (row === null || observer === null) return;
    observer.observe(row);
    return () => observer.unobserve(row);
  }, [observer]);
  return (
    <div
      ref={element}
      data-index={index}
      role={role}
      aria-setsize={role === undefined ? undefined : count}
      aria-posinset={role === undefined ? undefined : index + 1}
    >
      {render(index, height)}
    </div>
  );
}
