import type { AwaitedEnd } from "@perdure/client";

/** Returns what a wait waits for: "for the event payment.received", or "until May 4, 9:00 AM". */
export function waitText({ kind, event }: AwaitedEnd, until: string | undefined): string {
  if (kind === "event") return `for the event ${event}`;
  return until === undefined ? "for a time" : `until ${new Date(until).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`;
}

/** Returns the values that the data of an event must have, as one line: "orderId is A-1001, amount is 70". */
export const matchText = ({ match = {} }: AwaitedEnd): string => Object.entries(match).map(([path, value]) => `${path} is ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");

/** Returns data that match: an object with the values at their paths. */
export function matchingData({ match = {} }: AwaitedEnd): Record<string, unknown> {
  const data: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(match)) {
    const names = path.split(".");
    const last = names.pop()!;
    let object = data;
    for (const name of names) object = isObject(object[name]) ? object[name] : ((object[name] = {}) as Record<string, unknown>);
    object[last] = value;
  }
  return data;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
