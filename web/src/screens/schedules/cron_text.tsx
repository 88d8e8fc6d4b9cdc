import { type Cron, nextTime, parseCron } from "./cron";

const monthNames = Array.from({ length: 12 }, (_, i) => new Date(Date.UTC(2024, i, 1)).toLocaleDateString("en", { month: "long", timeZone: "UTC" }));
const dayNames = Array.from({ length: 7 }, (_, i) => new Date(Date.UTC(2024, 8, 1 + i)).toLocaleDateString("en", { weekday: "long", timeZone: "UTC" }));
const two = (value: number) => String(value).padStart(2, "0");

/** Returns a cron expression in words, such as "at 09:00, Monday to Friday". */
export function cronText({ minutes, hours, days, months, weekdays }: Cron): string {
  const parts = [timeText(minutes, hours)];
  if (weekdays.length < 7) parts.push(listText(weekdays, (i) => dayNames[i]!));
  if (days.length < 31) parts.push(`${weekdays.length < 7 ? "if it is " : ""}day ${listText(days, String)} of the month`);
  if (months.length < 12) parts.push(`in ${listText(months, (i) => monthNames[i - 1]!)}`);
  return (parts.length === 1 && hours.length < 24 ? [...parts, "every day"] : parts).join(", ");
}

const mostTimes = 6;

function timeText(minutes: readonly number[], hours: readonly number[]): string {
  if (minutes.length * hours.length <= mostTimes) return `at ${joined(hours.flatMap((hour) => minutes.map((minute) => `${two(hour)}:${two(minute)}`)))}`;
  const step = stepOf(minutes, 60);
  const at = minutes.length === 60 ? "every minute" : step !== undefined && minutes.length > 1 ? `every ${step} minutes` : `at ${joined(minutes.map((minute) => `:${two(minute)}`))} of each hour`;
  return hours.length === 24 ? at : `${at}, in the ${hours.length === 1 ? "hour" : "hours"} ${listText(hours, two)}`;
}

// The distance of values that are evenly spread over all, from 0.
function stepOf(values: readonly number[], all: number): number | undefined {
  const step = all / values.length;
  return values.every((value, i) => value === i * step) ? step : undefined;
}

// Three values or more in sequence are a range.
function listText(values: readonly number[], nameOf: (value: number) => string): string {
  const parts: string[] = [];
  for (let i = 0; i < values.length;) {
    let end = i;
    while (values[end + 1] === values[end]! + 1) end++;
    if (end - i >= 2) parts.push(`${nameOf(values[i]!)} to ${nameOf(values[end]!)}`);
    else parts.push(...values.slice(i, end + 1).map(nameOf));
    i = end + 1;
  }
  return joined(parts);
}

const joined = (parts: readonly string[]) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

/** What cron expressions, one a line, mean, and when the first of them is next. Nothing while one is invalid. */
export function CronPreview({ cron, timeZone }: { cron: string; timeZone: string }) {
  const parsed = cron.split("\n").filter((line) => line.trim() !== "").map(parseCron);
  if (parsed.length === 0 || parsed.includes(undefined)) return null;
  const now = Date.now();
  const times = parsed.flatMap((each) => nextTime(each!, timeZone, now) ?? []);
  const next = times.length === 0 ? undefined : new Date(Math.min(...times.map(Number)));
  const text = parsed.map((each) => cronText(each!)).join("; ");
  return (
    <>
      {text[0]!.toUpperCase() + text.slice(1)}.
      {next && <> Next: {next.toLocaleString(undefined, { timeZone, weekday: "short", month: "short", day: "numeric", year: "numeric", hour: "2-digit", minute: "2-digit" })}.</>}
    </>
  );
}
