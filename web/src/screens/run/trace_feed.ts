import type { PerdureClient, Trace, TraceEvent } from "@perdure/client";
import { useEffect, useState } from "react";
import { useClient } from "../../session";

/** A trace that follows its run. */
export interface TraceFeed {
  trace?: Trace;
  /** Why the trace does not follow its run. */
  error?: unknown;
  /** Since when the page has no connection, in milliseconds; undefined = it has one. */
  lostAt?: number | undefined;
}

/**
 * The trace of a run. While the run is active it follows the stream of the trace, unless the page is hidden: a browser opens
 * few connections to a host.
 */
export function useTrace(threadId: string, runId: string): TraceFeed & { reload: () => void } {
  const client = useClient();
  const [feed, setFeed] = useState<TraceFeed>({});
  const [generation, setGeneration] = useState(0);
  useEffect(() => {
    let following: AbortController | undefined;
    const change = () => {
      if (document.hidden) following?.abort();
      else if (!following || following.signal.aborted) {
        following = new AbortController();
        void follow(client, { threadId, runId, signal: following.signal }, (next) => setFeed((last) => ({ ...last, error: undefined, ...next, ...(next.lostAt !== undefined && { lostAt: last.lostAt ?? next.lostAt }) })));
      }
    };
    change();
    document.addEventListener("visibilitychange", change);
    return () => {
      document.removeEventListener("visibilitychange", change);
      following?.abort();
    };
  }, [client, threadId, runId, generation]);
  return { ...feed, reload: () => setGeneration(generation + 1) };
}

const waitInterval = 3_000;

// Reports the trace until the run ends and waits for nothing. Several changes of a frame of the screen are one.
async function follow(client: PerdureClient, { threadId, runId, signal }: { threadId: string; runId: string; signal: AbortSignal }, report: (feed: TraceFeed) => void): Promise<void> {
  let trace: Trace | undefined;
  let frame = 0;
  const connection = { signal, onRetry: () => report({ lostAt: Date.now() }), onReconnected: () => report({ lostAt: undefined }) };
  try {
    for (;;) {
      for await (const event of client.traceEvents(threadId, runId, connection)) {
        trace = traceAfter(trace, event);
        cancelAnimationFrame(frame);
        frame = requestAnimationFrame(() => trace && report({ trace }));
      }
      if (trace?.status !== "waiting") return;
      // The stream ends with the run, and the decisions about its interrupts come later.
      await new Promise((resolve) => setTimeout(resolve, waitInterval));
      signal.throwIfAborted();
    }
  } catch (error) {
    if (!signal.aborted) report({ error, lostAt: undefined });
  }
}

function traceAfter(trace: Trace | undefined, event: TraceEvent): Trace | undefined {
  if (event.type === "trace" || !trace) return event.trace;
  if (event.type === "end") return trace;
  const byId = new Map(trace.spans.map((span) => [span.id, span]));
  for (const span of event.spans ?? []) byId.set(span.id, span);
  return { ...trace, ...event.run, spans: [...byId.values()] };
}
