import type { Schedule } from "@perdure/client";

/** Returns the times of a schedule in words: its cron expressions, calendars and intervals. */
export function timesText({ cron = [], calendars = [], intervals = [], timeZone }: Schedule): string {
  const parts = [
    ...cron.map((expression) => expression),
    ...calendars.map((calendar) => Object.entries(calendar).map(([unit, value]) => `${unit} ${String(value)}`).join(", ")),
    ...intervals.map(({ every, offset }) => `every ${every}${offset ? ` + ${offset}` : ""}`),
  ];
  const zone = cron.length + calendars.length > 0 ? ` (${timeZone})` : "";
  return parts.join(" · ") + zone;
}
