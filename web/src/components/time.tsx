import { useSyncExternalStore } from "react";

const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

// All times of the page change together, every second. A component renders again only if its text has changed.
const clock = { now: Date.now(), listeners: new Set<() => void>(), timer: 0 };

function tick(): void {
  clock.now = Date.now();
  for (const notify of clock.listeners) notify();
}

function subscribe(listener: () => void): () => void {
  clock.listeners.add(listener);
  if (clock.listeners.size === 1) {
    clock.now = Date.now();
    clock.timer = window.setInterval(tick, 1_000);
  }
  return () => {
    clock.listeners.delete(listener);
    if (clock.listeners.size === 0) window.clearInterval(clock.timer);
  };
}

/** A text that depends on the time in milliseconds. It changes at most once a second. */
const useTextAt = (textAt: (now: number) => string): string => useSyncExternalStore(subscribe, () => textAt(clock.now));

function relativeText(at: number, now: number): string {
  const difference = at - now;
  const [unit, length] = steps.find(([, size]) => Math.abs(difference) >= size) ?? ["second", 1_000];
  return relative.format(Math.round(difference / length), unit);
}

/** A time in the zone of the reader: relative ("5 min. ago") with the whole time as its title, or absolute. */
export function Time({ at, isAbsolute = false }: { at: string; isAbsolute?: boolean }) {
  const date = new Date(at);
  const text = absolute.format(date);
  const time = date.getTime();
  // The clock is up to a second late. A time of the past must not look like one of the future.
  const relative = useTextAt((now) => relativeText(time, time > now && time <= Date.now() ? time : now));
  return (
    <time dateTime={at} title={text} className="number">
      {isAbsolute ? text : relative}
    </time>
  );
}

/** Returns a duration in milliseconds as a short text: 85 ms, 1.4 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const parts: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000]];
  const first = parts.findIndex(([, size]) => ms >= size);
  return parts
    .slice(first, first + 2)
    .map(([unit, size], i) => `${Math.floor((i === 0 ? ms : ms % parts[first]![1]) / size)} ${unit}`)
    .join(" ");
}

/** A duration between two times. Without an end it grows every second. */
export function Duration({ from, to }: { from: string; to?: string | undefined }) {
  const start = Date.parse(from);
  const text = useTextAt((now) => (to === undefined ? growingText(now - start) : durationText(Math.max(0, Date.parse(to) - start))));
  return <span className="number">{text}</span>;
}

/** Returns a duration in milliseconds that grows as a short text, without parts of seconds. */
export const growingText = (ms: number): string => (ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : durationText(ms));
