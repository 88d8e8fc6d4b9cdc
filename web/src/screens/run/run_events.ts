import type { StreamEvent } from "@perdure/client";
import { useEffect, useState } from "react";
import { useClient } from "../../session";

/** An event of a run in the log. */
export interface LoggedEvent {
  cursor: string;
  event: StreamEvent["event"];
  /** The event as JSON in lower case, for searches. */
  text: string;
  /** Of how many events it is made; absent = it is one. */
  count?: number;
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
  const client = useClient();
  const [state, setState] = useState<RunEvents>({ events: [], isLoading: true });
  const [generation, setGeneration] = useState(0);
  useEffect(() => {
    const reading = new AbortController();
    let events = state.events as LoggedEvent[];
    const read = async () => {
      for (;;) {
        const after = events.at(-1)?.cursor;
        const query = { runId, limit: pageSize, timestamps: true, ...(after !== undefined && { after }) };
        const { items } = (await client.loggedEvents(threadId, query, { signal: reading.signal })) ?? { items: [] };
        events = events.concat(items.map(({ cursor = "", event }) => ({ cursor, event, text: JSON.stringify(event).toLowerCase() })));
        const isLast = items.length < pageSize;
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
  }, [client, threadId, runId, isActive, generation]);
  return { ...state, retry: () => setGeneration(generation + 1) };
}

/** The path of the events of a run. */
export const eventsPath = (threadId: string, runId: string) => `/v1/threads/${encodeURIComponent(threadId)}/runs/${encodeURIComponent(runId)}/events`;
