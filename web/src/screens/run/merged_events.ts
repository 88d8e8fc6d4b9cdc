import type { LoggedEvent } from "./run_events";

const parts = new Set<string>(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"]);

/** Returns events in which the consecutive parts of a text, or of the arguments of a call, are one event with the whole of it. */
export function mergeParts(events: readonly LoggedEvent[]): LoggedEvent[] {
  const merged: LoggedEvent[] = [];
  for (let i = 0; i < events.length;) {
    let end = i + 1;
    while (end < events.length && isContinued(events[i]!, events[end]!)) end++;
    merged.push(end === i + 1 ? events[i]! : mergedEvent(events.slice(i, end)));
    i = end;
  }
  return merged;
}

function isContinued({ event: first }: LoggedEvent, { event: next }: LoggedEvent): boolean {
  return parts.has(first.type) && next.type === first.type && next.messageId === first.messageId && next.toolCallId === first.toolCallId;
}

function mergedEvent(events: readonly LoggedEvent[]): LoggedEvent {
  const event = { ...events[0]!.event, delta: events.map(({ event: { delta } }) => delta).join("") } as LoggedEvent["event"];
  return { cursor: events[0]!.cursor, event, text: JSON.stringify(event).toLowerCase(), count: events.length };
}
