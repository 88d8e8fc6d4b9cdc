import { bodyOf, connectWithRetry, errorFrom } from "./attempts.js";
import { Backoff, type ConnectionListeners } from "./backoff.js";
import { problemOf, ProblemError } from "./problem.js";
import type { TraceEvent } from "./schemas.js";
import type { Transport } from "./transport.js";

/**
 * Yields the events of the trace of a run until the run ends. A trace has no cursors: after a lost connection the stream
 * begins again, with an event that has the whole trace. Throws if the server refuses the request, if all attempts fail, and
 * when the signal is aborted.
 */
export async function* traceEvents(
  transport: Transport,
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
  listeners: ConnectionListeners = {},
): AsyncGenerator<TraceEvent, void, undefined> {
  const backoff = new Backoff(transport.retry, both(transport, listeners));
  const returned = new AbortController();
  const ended = AbortSignal.any([signal, returned.signal]);
  const call = { url, init: { headers: { ...headers, Accept: "text/event-stream" } } };
  let lost: Error | undefined;
  try {
    for (;;) {
      const connection = await connectWithRetry(() => transport.open(call, ended), backoff, ended, lost);
      try {
        const { ok, status } = connection.response;
        if (!ok) throw new ProblemError(problemOf(status, await bodyOf(connection)));
        backoff.connected();
        for await (const { hasData, text } of connection.frames()) {
          if (!hasData) continue;
          backoff.reset();
          const event = JSON.parse(text.slice(text.indexOf("data:") + "data:".length)) as TraceEvent;
          yield event;
          if (event.type === "end") return;
        }
        lost = new Error("the connection ended before the run");
      } catch (error) {
        if (ended.aborted || error instanceof ProblemError) throw error;
        lost = errorFrom(error);
      } finally {
        connection.close();
      }
    }
  } finally {
    returned.abort();
  }
}

// Returns listeners that call those of the client and those of the stream.
const both = (first: ConnectionListeners, second: ConnectionListeners): ConnectionListeners => ({
  onRetry: (retry) => {
    first.onRetry?.(retry);
    second.onRetry?.(retry);
  },
  onConnected: () => {
    first.onConnected?.();
    second.onConnected?.();
  },
  onReconnected: () => {
    first.onReconnected?.();
    second.onReconnected?.();
  },
});
