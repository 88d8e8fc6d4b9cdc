import type { HttpAgentFetchFn, RunAgentInput } from "@ag-ui/client";
import { problemOf } from "./problem.js";
import { resumable, type Source } from "./resumable.js";
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
 * of an agent, so an agent and its clones can share it.
 */
export function runFetch(transport: Transport, base: string): HttpAgentFetchFn {
  return async (plain, request: RunInit) => {
    const { onCursor, waitFor, ...init } = request;
    const url = waiting(plain, waitFor);
    const { threadId, runId } = JSON.parse(init.body as string) as RunAgentInput;
    // Repeating the same input attaches to the run. The client does that while it has no cursor, and after the end of
    // another run, which the server may send first: the cursor then belongs to that run.
    const call: Source["call"] = (cursor, { run = runId, last, open }) =>
      cursor === undefined || (last !== undefined && !open)
        ? { url, init }
        : { url: runURL(base, threadId, run) + "/events", init: behind(init, cursor) };
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
  const query = new URLSearchParams({ follow: String(view.follow), protocolVersion: view.protocolVersion ?? "" });
  const url = waiting(`${threadURL(view.base, view.thread)}/events?${query}`, view.waitFor);
  const init = { headers: { ...view.headers, Accept: "text/event-stream" } };
  const source: Source = {
    thread: view.thread,
    follow: view.follow,
    call: (cursor) => ({ url, init: cursor === undefined ? init : behind(init, cursor) }),
    onRun: view.onRun,
    onCursor: view.onCursor,
  };
  const response = await resumable(source, transport, view.signal);
  if (response.status !== 404) return response;
  const text = await response.text();
  const nothing = problemOf(404, text).code === "unknown_thread"; // a thread does not exist before its first run
  return nothing ? new Response("") : new Response(text, response);
}

function waiting(url: string, waitFor: string | undefined): string {
  if (waitFor === undefined) return url;
  return `${url}${url.includes("?") ? "&" : "?"}waitFor=${encodeURIComponent(waitFor)}`;
}

function behind({ headers }: RequestInit, cursor: string): RequestInit {
  const next = new Headers(headers);
  next.delete("Content-Type");
  next.set("Last-Event-ID", cursor);
  return { headers: next };
}
