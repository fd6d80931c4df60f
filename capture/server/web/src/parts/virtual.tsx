// A list of any length in the scrolled page: only rows near the window are elements. Rows are measured; what a
// measurement changes above the window is scrolled away, so that nothing moves under the reader.

import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Heights } from "./heights";

/** Rows beyond the window that are kept, pixels. */
const MARGIN = 700;

/** What a view may ask of its list. */
export type Handle = { reveal: (index: number, where?: "start" | "center" | "end") => void; isAtEnd: () => boolean };

type Props = {
  count: number;
  /** Height that a row is thought to have until it is measured, pixels. */
  estimate: number;
  keyOf: (index: number) => string;
  render: (index: number) => ComponentChildren;
  /** Called with the first and last row that are elements. */
  onRange?: (first: number, last: number) => void;
  /** Whether the end stays in view when it grows while it is in view. */
  follow?: boolean;
  handle?: (handle: Handle) => void;
  role?: "list" | "feed" | "presentation";
  label?: string;
  class?: string;
};

export function VirtualList({ count, estimate, keyOf, render, onRange, follow = false, handle, role = "list", label, class: name }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const heights = useMemo(() => new Heights(estimate), [estimate]);
  const [range, setRange] = useState<[number, number]>([0, Math.min(count, 20)]);
  const [, redraw] = useState(0);
  const anchor = useRef({ index: 0, atEnd: false, target: -1, where: "start" as "start" | "center" | "end" });
  heights.resize(count);

  const look = useCallback(() => {
    const element = list.current;
    if (element === null) return;
    const top = element.getBoundingClientRect().top;
    const first = heights.at(Math.max(0, -top - MARGIN));
    const last = heights.at(Math.max(0, innerHeight - top + MARGIN)) + 1;
    anchor.current.index = heights.at(Math.max(0, -top + 80));
    const page = document.documentElement;
    anchor.current.atEnd = page.scrollHeight - (scrollY + innerHeight) < 48;
    setRange((before) => (before[0] === first && before[1] === last ? before : [first, last]));
  }, [heights]);

  useEffect(() => {
    let scheduled = 0;
    const later = (): void => {
      if (scheduled === 0) {
        scheduled = requestAnimationFrame(() => {
          scheduled = 0;
          look();
        });
      }
    };
    // Whoever scrolls by hand is no longer taken to where a link pointed.
    const byHand = (): void => {
      anchor.current.target = -1;
    };
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later, { passive: true });
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(kind, byHand, { passive: true });
    look();
    return () => {
      cancelAnimationFrame(scheduled);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
      for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) removeEventListener(kind, byHand);
    };
  }, [look]);

  const place = useCallback((): void => {
    const { target, where } = anchor.current;
    const element = list.current;
    if (target < 0 || element === null) return;
    const top = scrollY + element.getBoundingClientRect().top + heights.top(target);
    const room = innerHeight - heights.get(target);
    const shift = where === "start" ? 120 : where === "center" ? Math.max(120, room / 2) : room - 24;
    scrollTo({ top: top - shift, behavior: "instant" });
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
      else if (follow && anchor.current.atEnd) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
      else if (Math.abs(above) >= 1) scrollBy({ top: above, behavior: "instant" });
      redraw((count) => count + 1);
      look();
    });
  }, [heights, follow]);
  useEffect(() => () => observer?.disconnect(), [observer]);

  useLayoutEffect(() => {
    if (follow && anchor.current.atEnd && anchor.current.target < 0) {
      scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    }
    look();
  }, [count]);

  useEffect(() => {
    handle?.({
      reveal: (index, where = "start") => {
        Object.assign(anchor.current, { target: index, where, index });
        place();
        look();
      },
      isAtEnd: () => anchor.current.atEnd,
    });
  }, [handle, place, look]);

  const first = Math.min(range[0], Math.max(0, count - 1));
  const last = Math.min(range[1], count);
  useEffect(() => onRange?.(first, last), [first, last, onRange]);

  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(<Measured key={keyOf(index)} index={index} observer={observer} render={render} role={role === "list" ? "listitem" : undefined} count={count} />);
  }
  const before = heights.top(first);
  const after = Math.max(0, heights.total() - heights.top(last));
  return (
    <div ref={list} class={`virtual ${name ?? ""}`} role={role} aria-label={label}>
      <div style={{ height: `${before}px` }} role="presentation" />
      {rows}
      <div style={{ height: `${after}px` }} role="presentation" />
    </div>
  );
}

type RowProps = {
  index: number;
  observer: ResizeObserver | null;
  render: (index: number) => ComponentChildren;
  role: "listitem" | undefined;
  count: number;
};

function Measured({ index, observer, render, role, count }: RowProps) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const row = element.current;
    if (row === null || observer === null) return;
    observer.observe(row);
    return () => observer.unobserve(row);
  }, [observer]);
  return (
    <div ref={element} data-index={index} role={role} aria-setsize={role === undefined ? undefined : count} aria-posinset={role === undefined ? undefined : index + 1}>
      {render(index)}
    </div>
  );
}
