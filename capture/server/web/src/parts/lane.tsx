// States over time as a strip. Colour, height and hatching distinguish them, so that colour alone is not needed.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Confidence, State } from "../api/routes";
import { clock, exactly } from "../text/format";
import { CONFIDENCE, STATES } from "../text/names";

export type Segment = { state: State; from: number; until: number; confidence: Confidence };
export type Mark = { at: number; kind: string };

/** Maximum width of a letter in a label, pixels. */
const LETTER = 8;
/** Minimum width of a segment, pixels. */
const THIN = 2;
/** Height of each state, as a fraction of the strip's. */
const SHARE: Record<State, number> = { running: 0.62, waiting: 0.36, waiting_approval: 1, idle: 0.14, exited: 0.06, unknown: 0.2 };

/** The width of an element, pixels. */
export function useWidth<T extends HTMLElement>(): [{ current: T | null }, number] {
  const element = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const target = element.current;
    if (target === null) return;
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    observer.observe(target);
    setWidth(target.clientWidth);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

type Props = {
  segments: Segment[];
  from: number;
  until: number;
  height: number;
  marks?: Mark[];
  chosen?: number | null;
  onChoose?: (time: number) => void;
};

/** Joins segments narrower than a pixel: the state most important to the user wins. */
export function visibleSegments(segments: Segment[], from: number, until: number, width: number): Segment[] {
  const perPixel = (until - from) / Math.max(1, width);
  const found: Segment[] = [];
  for (const segment of segments) {
    const start = Math.max(from, segment.from);
    const end = Math.min(until, segment.until);
    if (end <= start) continue;
    const last = found.at(-1);
    if (last !== undefined && end - start < perPixel && last.until - last.from < perPixel * 2) {
      last.until = end;
      if (SHARE[segment.state] > SHARE[last.state]) last.state = segment.state;
    } else if (last !== undefined && last.state === segment.state && last.confidence === segment.confidence) {
      last.until = end;
    } else {
      found.push({ ...segment, from: start, until: end });
    }
  }
  return found;
}

/** The strip. */
export function Lane({ segments, from, until, height, marks = [], chosen = null, onChoose }: Props) {
  const [element, width] = useWidth<HTMLDivElement>();
  const hatch = useId();
  const x = (time: number): number => ((time - from) / Math.max(1, until - from)) * width;
  const choose = (event: MouseEvent): void => {
    const box = element.current?.getBoundingClientRect();
    if (box === undefined || onChoose === undefined) return;
    onChoose(Math.round(from + ((event.clientX - box.left) / Math.max(1, box.width)) * (until - from)));
  };
  return (
    <div ref={element} class={`lane ${onChoose === undefined ? "" : "lane-press"}`} style={{ height: `${height}px` }} onClick={choose}>
      {width > 0 && (
        <svg width={width} height={height} aria-hidden="true" focusable="false">
          <defs>
            <pattern id={hatch} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="2" height="5" class="lane-hatch" />
            </pattern>
          </defs>
          {visibleSegments(segments, from, until, width).map((segment) => {
            // Short segments are visible too, even at the end.
            const left = Math.min(x(segment.from), width - THIN);
            const wide = Math.max(THIN, x(segment.until) - left);
            const high = SHARE[segment.state] * height;
            return (
              <g key={segment.from}>
                <title>{`${STATES[segment.state]}, ${CONFIDENCE[segment.confidence]}, from ${exactly(segment.from)}`}</title>
                <rect x={left} y={height - high} width={wide} height={high} class={`lane-${segment.state}`} />
                {segment.confidence === "low" && <rect x={left} y={height - high} width={wide} height={high} fill={`url(#${hatch})`} />}
              </g>
            );
          })}
          {marks.map((mark) => (
            <path key={`${mark.at} ${mark.kind}`} d={`M${x(mark.at)} 0v5`} class="lane-mark">
              <title>{`${mark.kind.replaceAll("_", " ")}, ${exactly(mark.at)}`}</title>
            </path>
          ))}
          {chosen !== null && chosen >= from && chosen <= until && <path d={`M${x(chosen)} 0v${height}`} class="lane-cursor" />}
        </svg>
      )}
    </div>
  );
}

const STEPS = [
  1_000,
  5_000,
  15_000,
  60_000,
  300_000,
  900_000,
  1_800_000,
  3_600_000,
  3 * 3_600_000,
  6 * 3_600_000,
  12 * 3_600_000,
  86_400_000,
  2 * 86_400_000,
  7 * 86_400_000,
  14 * 86_400_000,
  30 * 86_400_000,
];
const DATE = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The times below a strip. */
export function Axis({ from, until }: { from: number; until: number }) {
  const [element, width] = useWidth<HTMLDivElement>();
  const count = Math.max(2, Math.floor(width / 110));
  const step = STEPS.find((step) => (until - from) / step <= count) ?? Number.MAX_SAFE_INTEGER;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const ticks: number[] = [];
  for (let time = Math.ceil((from - offset) / step) * step + offset; time <= until; time += step) ticks.push(time);
  return (
    <div ref={element} class="axis" aria-hidden="true">
      {width > 0 && (
        <svg width={width} height={18} focusable="false">
          {ticks.map((time) => {
            const x = ((time - from) / Math.max(1, until - from)) * width;
            const label =
              step >= 86_400_000 ? DATE.format(time) : step < 60_000 ? new Date(time).toLocaleTimeString(undefined, { hourCycle: "h23" }) : clock(time);
            if (x + 3 + label.length * LETTER > width) return null;
            return (
              <g key={time}>
                <path d={`M${x} 0v4`} class="axis-tick" />
                <text x={Math.max(0, x + 3)} y="13">
                  {label}
                </text>
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}
