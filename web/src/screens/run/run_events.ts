import { type ProblemError, type StreamEvent } from "@perdure/client";
import { useEffect, useState } from "react";
import { requestJSON } from "../../session";

/** An event of a run in the log. */
export interface LoggedEvent {
  cursor: string;
  event: StreamEvent["event"];
  /** The event as JSON in lower case, for searches. */
  text: string;
}

/** The events that are loaded. */
export interface RunEvents {
  events: readonly LoggedEvent[];
  isLoading: boolean;
  error?: unknown;
}

const pageSize = 500;
const pollInterval = 2_000;

/** The events of a run, page by page. While the run is active, the events that follow are read every two seconds. */
export function useRunEvents(threadId: string, runId: string, isActive: boolean): RunEvents & { retry: () => void } {
  const [state, setState] = useState<RunEvents>({ events: [], isLoading: true });
  const [generation, setGeneration] = useState(0);
  useEffect(() => {
    const reading = new AbortController();
    let events = state.events as LoggedEvent[];
    const read = async () => {
      for (;;) {
        const page = await pageAfter(threadId, runId, events.at(-1)?.cursor, reading.signal);
        if (page.items.length > 0) events = events.concat(page.items.map((item) => ({ ...item, text: JSON.stringify(item.event).toLowerCase() })));
        const isLast = page.items.length < pageSize;
        setState({ events, isLoading: !isLast });
        if (!isLast) continue;
        if (!isActive) return;
        await new Promise((resolve) => setTimeout(resolve, pollInterval));
        if (reading.signal.aborted) return;
      }
    };
    read().catch((error: unknown) => !reading.signal.aborted && setState({ events, isLoading: false, error }));
    return () => reading.abort();
    // The events that are loaded stay when the run ends, or after a failed request.
  }, [threadId, runId, isActive, generation]);
  return { ...state, retry: () => setGeneration(generation + 1) };
}

interface Page {
  items: { cursor: string; event: StreamEvent["event"] }[];
}

let hasTimestamps = true;

async function pageAfter(threadId: string, runId: string, after: string | undefined, signal: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({ limit: String(pageSize), ...(after !== undefined && { after }), ...(hasTimestamps && { timestamps: "true" }) });
  try {
    return (await requestJSON<Page | undefined>(`${eventsPath(threadId, runId)}?${query}`, { headers: { Accept: "application/json" }, signal })) ?? { items: [] };
  } catch (error) {
    if (!hasTimestamps || (error as ProblemError).problem?.parameter !== "timestamps") throw error;
    hasTimestamps = false;
    return pageAfter(threadId, runId, after, signal);
  }
}

/** The path of the events of a run. */
export const eventsPath = (threadId: string, runId: string) => `/v1/threads/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(runId)}/events`;
