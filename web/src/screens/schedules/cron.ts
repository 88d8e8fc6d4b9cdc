/** The values of a cron expression that match, each in ascending order. A time must match all fields. */
export interface Cron {
  minutes: readonly number[];
  hours: readonly number[];
  days: readonly number[];
  months: readonly number[];
  /** From 0, for Sunday. */
  weekdays: readonly number[];
}

const abbreviations: Record<string, string> = {
  "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
};
const monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/** Parses a cron expression as the server does; undefined = it is invalid. */
export function parseCron(expression: string): Cron | undefined {
  const lower = expression.trim().toLowerCase();
  const fields = (abbreviations[lower] ?? lower).split(/\s+/);
  if (fields.length !== 5) return undefined;
  const minutes = valuesOf(fields[0]!, 0, 59);
  const hours = valuesOf(fields[1]!, 0, 23);
  const days = valuesOf(fields[2]!, 1, 31);
  const months = valuesOf(fields[3]!, 1, 12, monthNames);
  const week = valuesOf(fields[4]!, 0, 7, weekdayNames);
  if (!minutes || !hours || !days || !months || !week) return undefined;
  return { minutes, hours, days, months, weekdays: [...new Set(week.map((day) => day % 7))].sort((a, b) => a - b) };
}

function valuesOf(field: string, low: number, high: number, names: readonly string[] = []): number[] | undefined {
  const found = new Set<number>();
  const number = (text: string) => (names.includes(text) ? names.indexOf(text) + low : /^\d+$/.test(text) ? Number(text) : NaN);
  for (const term of field.split(",")) {
    const [, range = "", step] = /^([^/]+)(?:\/(\d+))?$/.exec(term) ?? [];
    const [first = "", last] = range.split("-");
    const from = range === "*" ? low : number(first);
    const to = range === "*" || (last === undefined && step !== undefined) ? high : last === undefined ? from : number(last);
    if (!(from >= low && to <= high && from <= to) || step === "0") return undefined;
    for (let value = from; value <= to; value += Number(step ?? 1)) found.add(value);
  }
  return [...found].sort((a, b) => a - b);
}

const day = 86_400_000;
const mostDays = 366 * 8; // the 29th of February may be eight years ahead

/** Returns the next time in a time zone after a time in milliseconds; undefined = there is none, or the zone is unknown. */
export function nextTime({ minutes, hours, days, months, weekdays }: Cron, timeZone: string, after: number): Date | undefined {
  const clock = wallClock(timeZone);
  if (clock === undefined) return undefined;
  const today = Math.floor(clock(after) / day) * day;
  for (let i = 0; i <= mostDays; i++) {
    const date = new Date(today + i * day);
    if (!months.includes(date.getUTCMonth() + 1) || !days.includes(date.getUTCDate()) || !weekdays.includes(date.getUTCDay())) continue;
    for (const hour of hours) {
      for (const minute of minutes) {
        const wall = date.getTime() + (hour * 60 + minute) * 60_000;
        const first = wall - (clock(wall) - wall);
        const at = wall - (clock(first) - first);
        if (at > after && clock(at) === wall) return new Date(at); // otherwise the clocks skip the time
      }
    }
  }
  return undefined;
}

// Returns the function from a time to what the clocks of a zone show, as if that were UTC.
function wallClock(timeZone: string): ((at: number) => number) | undefined {
  try {
    const format = new Intl.DateTimeFormat("en", { timeZone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
    return (at) => {
      const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)])) as Record<string, number>;
      return Date.UTC(part.year!, part.month! - 1, part.day, part.hour, part.minute, part.second) + (at % 1_000);
    };
  } catch {
    return undefined;
  }
}
