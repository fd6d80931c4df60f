// The page's few icons, drawn with lines of one weight, and the signs of states. Each sign has a distinct shape, so
// that colour is not needed to distinguish them.

import type { Need, State } from "../api/routes";
import { STATES } from "../text/names";

const PATHS = {
  sessions: "M3 5h14M3 10h14M3 15h9",
  approvals: "M10 2.5l6 2.2v4.6c0 4-2.6 6.6-6 8.2-3.4-1.6-6-4.2-6-8.2V4.7zM7.4 9.8l1.9 1.9 3.4-3.6",
  overview: "M3 17V9M8 17V4M13 17v-6M18 17H2.5M17 17V7",
  devices: "M2.5 4.5h10v8h-10zM5 15.5h5M7.5 12.5v3M14.5 8h3v8.5h-3z",
  search: "M9 3.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM13 13l4 4",
  pin: "M7 3h6l-1 5 3 3H5l3-3zM10 11v6",
  clock: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM10 6v4l2.8 1.8",
  archive: "M3 4h14v3.5H3zM4.5 7.5V16h11V7.5M8 10.5h4",
  copy: "M7 7h9v9H7zM13 7V4H4v9h3",
  check: "M4 10.5l4 4 8-9",
  cross: "M5 5l10 10M15 5L5 15",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  back: "M12 4l-6 6 6 6",
  right: "M8 4l6 6-6 6",
  down: "M4 8l6 6 6-6",
  terminal: "M2.5 4h15v12h-15zM5.5 8l2.5 2-2.5 2M10 12.5h4",
  file: "M5 2.5h6.5L15 6v11.5H5zM11.5 2.5V6H15",
  warning: "M10 3l7.5 13.5h-15zM10 8v4M10 14.3h.01",
  tool: "M12.5 3.5a4 4 0 0 0-4.8 5.2L3 13.4 6.6 17l4.7-4.7a4 4 0 0 0 5.2-4.8L14 10l-2.9-.9-.9-2.9z",
  read: "M10 5C8 3.6 5.6 3.4 3 3.8v11.4c2.6-.4 5-.2 7 1.2 2-1.4 4.4-1.6 7-1.2V3.8c-2.6-.4-5-.2-7 1.2zM10 5v11.4",
  edit: "M4 16l.8-3.6L13 4.2l2.8 2.8-8.2 8.2zM11.3 6l2.7 2.7",
  globe: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM3 10h14M10 3c2.4 2 2.8 11.6 0 14-2.8-2.4-2.4-12 0-14z",
  person: "M10 3.5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM4 17c.4-3.4 2.6-5 6-5s5.600 1.600 6 5",
  branch: "M6 4v12M6 11c5 0 8-1 8-5M6 2.500a1.500 1.500 0 1 1 0 3 1.500 1.500 0 0 1 0-3M14 2.500a1.500 1.500 0 1 1 0 3",
  bell: "M5 14c1-1.200 1.200-2.400 1.200-5a3.800 3.800 0 0 1 7.600 0c0 2.600.2 3.800 1.200 5zM8.500 16.500h3",
  question: "M7 7.500a3 3 0 1 1 4.300 2.700c-.9.5-1.300 1-1.300 2M10 15h.01",
  keyboard: "M2.500 5.500h15v9h-15zM5.500 8.500h.01M8.500 8.500h.01M11.500 8.500h.01M14.500 8.500h.01M6.500 11.500h7",
  sun: "M10 6.500a3.500 3.500 0 1 1 0 7 3.500 3.500 0 0 1 0-7zM10 2.500v1.500M10 16v1.500M2.500 10H4M16 10h1.500M4.700 4.700l1 1M14.300 14.300l1 1M15.300 4.700l-1 1M5.700 14.300l-1 1",
  plus: "M10 4v12M4 10h12",
  paste: "M7.5 4H5v13h10V4h-2.500M7.500 2.500h5v3h-5zM8 10h4M8 13h4",
  play: "M6 4l10 6-10 6z",
  pause: "M7 4v12M13 4v12",
  options: "M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4",
} as const;

export type IconName = keyof typeof PATHS;

/** A small picture next to a word; screen readers skip it. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width={name === "more" ? 2.4 : 1.6} stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

/** The sign of a row: the session's need if it has one, otherwise its state. */
export type Sign = Need | State;

/** The words of a sign. A need that corresponds to a state has the state's words. */
export const WORDS: Record<Sign, string> = {
  ...STATES,
  approval: STATES.waiting_approval,
  question: "Asks a question",
  failure: "Failed",
  stuck: "Stuck",
  prompt: "Waiting for a prompt",
};

/** The class of a sign's colour. */
export const TONES: Record<Sign, string> = {
  approval: "tone-need",
  waiting_approval: "tone-need",
  question: "tone-need",
  failure: "tone-fail",
  stuck: "tone-stuck",
  prompt: "tone-ready",
  waiting: "tone-ready",
  running: "tone-run",
  idle: "tone-idle",
  exited: "tone-idle",
  unknown: "tone-idle",
};

/** The shape of a sign. */
export function SignShape({ sign, size = 18 }: { sign: Sign; size?: number }) {
  return (
    <svg class={`sign ${TONES[sign]} sign-${sign}`} width={size} height={size} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      {shape(sign)}
    </svg>
  );
}

function shape(sign: Sign) {
  const line = { fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round", "stroke-linejoin": "round" } as const;
  const mark = { fill: "none", stroke: "var(--surface)", "stroke-width": 2, "stroke-linecap": "round", "stroke-linejoin": "round" } as const;
  switch (sign) {
    case "approval":
    case "waiting_approval":
      return (
        <>
          <path d="M10 1.500l8.500 8.500-8.500 8.500L1.500 10z" fill="currentColor" />
          <path d="M10 6v4.500M10 13.600h.01" {...mark} />
        </>
      );
    case "question":
      return (
        <>
          <circle cx="10" cy="10" r="8" fill="currentColor" />
          <path d="M7.900 8a2.200 2.200 0 1 1 3.200 2c-.7.4-1 .8-1 1.500M10 14.300h.01" {...mark} />
        </>
      );
    case "failure":
      return (
        <>
          <rect x="2.500" y="2.500" width="15" height="15" rx="2.500" fill="currentColor" />
          <path d="M7 7l6 6M13 7l-6 6" {...mark} />
        </>
      );
    case "stuck":
      return (
        <>
          <path d="M10 2.500l8 14.500H2z" {...line} />
          <path d="M10 8v3.600M10 14.200h.01" {...line} />
        </>
      );
    case "prompt":
    case "waiting":
      return (
        <>
          <circle cx="10" cy="10" r="7" {...line} />
          <path d="M6.800 10.300l2.200 2.200 4.200-4.600" {...line} />
        </>
      );
    case "running":
      return (
        <>
          <circle cx="10" cy="10" r="7" {...line} opacity="0.25" />
          <path class="spin" d="M10 3a7 7 0 0 1 7 7" {...line} />
        </>
      );
    case "idle":
      return <circle cx="10" cy="10" r="4" {...line} />;
    case "exited":
      return <rect x="6" y="6" width="8" height="8" rx="1" {...line} />;
    case "unknown":
      return <circle cx="10" cy="10" r="6.500" {...line} stroke-dasharray="2 4" />;
  }
}
