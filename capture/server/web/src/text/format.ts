// Times, durations and numbers for users.

/** A time of the API in milliseconds; `NaN` if it is invalid. */
export const millis = (time: string): number => Date.parse(time);

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "m"],
  [1, "s"],
];

/** A duration in its largest unit: `3 s`, `12 m`, `5 h`, `2 d`. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** A duration in its two largest units: `1 h 05 m`, `42 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} m` : `${minutes} m ${pad(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48 && minutes % 60 === 0) return `${hours} h`;
  return hours < 48 ? `${hours} h ${pad(minutes % 60)} m` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A position in a recording: `0:07`, `12:30`, `1:02:03`. */
export function position(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return `${hours === 0 ? minutes : `${hours}:${pad(minutes)}`}:${pad(seconds % 60)}`;
}

const pad = (value: number): string => String(value).padStart(2, "0");

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const SECONDS = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

/** The time of day for today, otherwise with the date, and with the year only if it is another one. */
export function moment(time: string | number, now = Date.now()): string {
  const date = new Date(time);
  const clock = CLOCK.format(date);
  if (DAY.format(date) === DAY.format(now)) return clock;
  return `${(date.getFullYear() === new Date(now).getFullYear() ? DAY_OF_YEAR : DAY).format(date)}, ${clock}`;
}

/** Date and time to the second. */
export const exactly = (time: string | number): string => FULL.format(new Date(time));

/** The time of day. */
export const clock = (time: string | number): string => CLOCK.format(new Date(time));

/** The time of day, with seconds. */
export const withSeconds = (time: string | number): string => SECONDS.format(new Date(time));

/** A count with at most three digits: `950`, `12.3k`, `1.2M`. */
export function short(count: number): string {
  const steps: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [size, unit] of steps) {
    if (count >= size) {
      const value = count / size;
      return `${value >= 100 ? Math.round(value) : Number(value.toFixed(1))}${unit}`;
    }
  }
  return String(count);
}

/** A price; `no price` if unknown. */
export function dollars(amount: number | null): string {
  if (amount === null) return "no price";
  return amount !== 0 && amount < 0.01 ? "< $0.01" : `$${amount.toFixed(2)}`;
}

/** `1 file`, `3 files`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** A count with all its digits: `120,011`. */
export const exactCount = (count: number): string => count.toLocaleString("en");

/** A size in bytes. */
export const bytes = (count: number): string => (count < 1000 ? `${count} B` : `${short(count)}B`);

/** The last part of a path. */
export function basename(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || path;
}

/** A path relative to a directory, if it is below it. */
export const relative = (path: string, directory: string | null): string =>
  directory !== null && path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path;

/** A path below a directory, relative to it, for a user who decides about it. Any other path stays as it is, also one
 * that would be read as another place without its directory. */
export function within(path: string, directory: string | null): string {
  const short = relative(path, directory);
  const isPlain = short.split("/").every((part) => part !== "" && part !== "." && part !== "..") && !/^[~\s]|^\w:|\\|, |\s$/.test(short);
  return isPlain ? short : path;
}

/** A text that begins with a capital letter. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The last eight characters of an id, as capture prints ids. */
export const shortId = (id: string): string => id.slice(-8);
