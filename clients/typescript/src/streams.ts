import type { HttpAgentFetchFn, RunAgentInput } from "@ag-ui/client";
import { problemOf } from "./problem.js";
import { resumable, type Source } from "./resumable.js";
import { runURL, threadURL } from "./routes.js";
import type { Transport } from "./transport.js";

/** A request for a run, with what its agent wants to be told. */
export interface RunInit extends RequestInit {
  /** The events up to a cursor have been handed on. */
  onCursor?: (cursor: string) => void;
  /** The cursor of an acknowledgement: the run is begun when the thread shows its effect. */
  waitFor?: string | undefined;
}

/**
 * A fetch for HttpAgent that shows a run to its end. It knows nothing of its agent, so that an agent
 * and its clones can share it.
 */
export function runFetch(transport: Transport, base: string): HttpAgentFetchFn {
  return async (plain, request: RunInit) => {
    const { onCursor, waitFor, ...init } = request;
    const url = waiting(plain, waitFor);
    const { threadId, runId } = JSON.parse(init.body as string) as RunAgentInput;
    // The same input again attaches, so that serves until there is a cursor, and when another run,
    // which a server may show first, has ended. A cursor is one of the run that it was shown in.
    const call: Source["call"] = (cursor, { run = runId, last, open }) =>
      cursor === undefined || (last !== undefined && !open)
        ? { url, init }
        : { url: runURL(base, threadId, run) + "/events", init: behind(init, cursor) };
    const source: Source = { thread: threadId, run: runId, call, onCursor };
    return resumable(source, transport, init.signal ?? new AbortController().signal);
  };
}

/** What to show of a thread. */
export interface ThreadView {
  base: string;
  thread: string;
  /** What the agent speaks; without it, it is older than AG-UI 1.0. */
  protocolVersion: string | undefined;
  follow: boolean;
  /** The cursor of an acknowledgement whose effect is to be shown. */
  waitFor: string | undefined;
  headers: Record<string, string>;
  signal: AbortSignal;
  onRun(run: string): void;
  onCursor(cursor: string): void;
}

/** A thread: its history, then its active run, then, if it is followed, every further one. */
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
  const nothing = problemOf(404, text).code === "unknown_thread"; // a thread begins with its first run
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
