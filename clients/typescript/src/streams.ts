import type { HttpAgentFetchFn, RunAgentInput } from "@ag-ui/client";
import { problemOf } from "./problem.js";
import { resumable, type Source } from "./resumable_stream.js";
import { runURL, threadURL } from "./routes.js";
import type { Transport } from "./transport.js";

/** A request for a run, with the options of its agent. */
export interface RunInit extends RequestInit {
  /** Called when the agent has received the events up to a cursor. */
  onCursor?: (cursor: string) => void;
  /** The cursor of an acknowledgement: the server starts the run when the thread shows the effect. */
  waitFor?: string | undefined;
}

/**
 * Returns a fetch function for HttpAgent that reads a run to its end over several connections. The function has no state
 * of an agent, so an agent and its clones can share it. agent is undefined if only its URL is known: then runs start over
 * HTTP.
 */
export function runFetch(transport: Transport, base: string, agent: string | undefined): HttpAgentFetchFn {
  return async (plain, request: RunInit) => {
    const { onCursor, waitFor, ...init } = request;
    const url = withWaitFor(plain, waitFor);
    const input = JSON.parse(init.body as string) as RunAgentInput;
    const { threadId, runId } = input;
    // A shared WebSocket also closes with another tab, which must not cancel this run.
    const hasFrame = agent !== undefined && !cancelsOnDisconnect(input);
    // Repeating the same input attaches to the run. The client does that while it has no cursor, and after the end of
    // another run, which the server may send first: the cursor then belongs to that run.
    const call: Source["call"] = (cursor, { run = runId, last, open }) => {
      if (cursor === undefined || (last !== undefined && !open)) {
        return { url, init, frame: hasFrame ? { type: "run", agent, input, waitFor } : undefined };
      }
      return {
        url: `${runURL(base, threadId, run)}/events`,
        init: after(init, cursor),
        frame: hasFrame ? { type: "subscribe", threadId, runId: run, after: cursor } : undefined,
      };
    };
    const source: Source = { thread: threadId, run: runId, call, onCursor };
    return resumable(source, transport, init.signal ?? new AbortController().signal);
  };
}

/** The options of a stream of a thread. */
export interface ThreadView {
  base: string;
  thread: string;
  /** The protocol version of the agent; undefined = older than AG-UI 1.0. */
  protocolVersion: string | undefined;
  follow: boolean;
  /** The cursor of an acknowledgement: the stream begins when the thread shows the effect. */
  waitFor: string | undefined;
  headers: Record<string, string>;
  signal: AbortSignal;
  onRun(run: string): void;
  onCursor(cursor: string): void;
}

/** Returns the stream of a thread: its history, its active run and, with follow, every later run. */
export async function threadStream(transport: Transport, view: ThreadView): Promise<Response> {
  const { thread: threadId, follow, waitFor, protocolVersion = "" } = view;
  const query = new URLSearchParams({ follow: String(follow), protocolVersion });
  const url = withWaitFor(`${threadURL(view.base, threadId)}/events?${query}`, waitFor);
  const init = { headers: { ...view.headers, Accept: "text/event-stream" } };
  const source: Source = {
    thread: threadId,
    follow,
    call: (cursor) => ({
      url,
      init: cursor === undefined ? init : after(init, cursor),
      frame: { type: "subscribe", threadId, follow, protocolVersion, waitFor, after: cursor },
    }),
    onRun: view.onRun,
    onCursor: view.onCursor,
  };
  const response = await resumable(source, transport, view.signal);
  if (response.status !== 404) return response;
  const text = await response.text();
  const nothing = problemOf(404, text).code === "unknown_thread"; // a thread does not exist before its first run
  return nothing ? new Response("") : new Response(text, response);
}

function withWaitFor(url: string, waitFor: string | undefined): string {
  if (waitFor === undefined) return url;
  return `${url}${url.includes("?") ? "&" : "?"}waitFor=${encodeURIComponent(waitFor)}`;
}

function after({ headers }: RequestInit, cursor: string): RequestInit {
  const next = new Headers(headers);
  next.delete("Content-Type");
  next.set("Last-Event-ID", cursor);
  return { headers: next };
}

function cancelsOnDisconnect({ forwardedProps }: RunAgentInput): boolean {
  return (forwardedProps as { perdure?: { cancelOnDisconnect?: boolean } } | undefined)?.perdure?.cancelOnDisconnect === true;
}
