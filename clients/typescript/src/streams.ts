import type { HttpAgentFetchFn, RunAgentInput } from "@ag-ui/client";
import { bodyOf, connectWithRetry } from "./attempts.js";
import { Backoff } from "./backoff.js";
import type { Call } from "./connection.js";
import { errorOf, problemOf } from "./problem.js";
import { resumable, type Source } from "./resumable_stream.js";
import { runURL, threadURL, withQuery } from "./routes.js";
import type { Transport } from "./transport.js";

/** A request for a run, with the options of its agent. */
export interface RunInit extends RequestInit {
  /** Called when the agent has received the events up to a cursor. */
  onCursor?: (cursor: string) => void;
  /** Called with the active run, if the input became steering of it. */
  onSteered?: (run: string) => void;
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
    const { onCursor, onSteered, waitFor, ...init } = request;
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
    const { "Content-Type": _, ...headers } = (init.headers ?? {}) as Record<string, string>;
    const steered = (active: string): Source => {
      onSteered?.(active);
      const { protocolVersion } = input as { protocolVersion?: string };
      return { ...threadSource({ base, threadId, runId: active, join: true, protocolVersion, headers }), onCursor };
    };
    const source: Source = { thread: threadId, run: runId, call, steered, onCursor };
    return resumable(source, transport, init.signal ?? new AbortController().signal);
  };
}

/** The options of a stream of a thread, or of one run. */
export interface ThreadView {
  base: string;
  threadId: string;
  /** Only this run; undefined = the thread. */
  runId?: string | undefined;
  /** The protocol version of the reader; undefined = older than AG-UI 1.0. */
  protocolVersion: string | undefined;
  headers: Record<string, string>;
  /** Of a thread: whether later runs follow. Default true. */
  follow?: boolean | undefined;
  /** Of a run: whether the stream begins with snapshots. */
  join?: boolean | undefined;
  /** The cursor after which the stream begins. */
  after?: string | undefined;
  /** The cursor of an acknowledgement: the stream begins when the thread shows the effect. */
  waitFor?: string | undefined;
}

/** Returns the stream of a thread or a run. */
export function threadSource(view: ThreadView): Source {
  const { base, threadId, runId, protocolVersion = "", waitFor } = view;
  const url = runId === undefined ? threadURL(base, threadId) : runURL(base, threadId, runId);
  const follow = runId === undefined ? (view.follow ?? true) : undefined;
  const init = { headers: { ...view.headers, Accept: "text/event-stream" } };
  return {
    thread: threadId,
    ...(runId !== undefined && { run: runId }),
    ...(follow !== undefined && { follow }),
    call(cursor = view.after) {
      const options = {
        ...(follow !== undefined && { follow }),
        ...(view.join && cursor === undefined && { join: true }),
        ...(waitFor !== undefined && { waitFor }),
        protocolVersion,
      };
      return {
        url: withQuery(`${url}/events`, options),
        init: cursor === undefined ? init : after(init, cursor),
        frame: { type: "subscribe", threadId, ...(runId !== undefined && { runId }), ...options, after: cursor },
      };
    },
  };
}

/** Returns the response with a thread's history, its active run and, with follow, every later run. */
export async function threadStream(
  transport: Transport,
  view: ThreadView,
  signal: AbortSignal,
  callbacks: Pick<Source, "onRun" | "onCursor">,
): Promise<Response> {
  const response = await resumable({ ...threadSource(view), ...callbacks }, transport, signal);
  if (response.status !== 404) return response;
  const text = await response.text();
  const nothing = problemOf(404, text).code === "unknown_thread"; // a thread does not exist before its first run
  return nothing ? new Response("") : new Response(text, response);
}

/** Starts a run and returns its ID when it is durable, without reading its events. */
export async function openRun(
  transport: Transport,
  run: {
    url: string;
    agent: string;
    input: RunAgentInput;
    headers: Record<string, string>;
    revision?: string | undefined;
    waitFor?: string | undefined;
    signal?: AbortSignal;
  },
): Promise<string> {
  const { agent, input, revision, waitFor, signal = new AbortController().signal } = run;
  const headers = { ...run.headers, "Content-Type": "application/json", Accept: "text/event-stream" };
  const body = JSON.stringify(input);
  const call: Call = {
    url: withQuery(run.url, { revision, waitFor }),
    init: { method: "POST", headers, body },
    frame: { type: "run", agent, input: JSON.parse(body) as RunAgentInput, revision, waitFor },
  };
  const backoff = new Backoff(transport.retry, transport);
  const connection = await connectWithRetry(() => transport.open(call, signal), backoff, signal);
  try {
    const { ok, status } = connection.response;
    if (!ok) throw errorOf(problemOf(status, await bodyOf(connection)));
    backoff.connected();
    if (status !== 202) return input.runId;
    return (JSON.parse(await connection.text()) as { runId: string }).runId;
  } finally {
    connection.close();
  }
}

const withWaitFor = (url: string, waitFor: string | undefined) => withQuery(url, { waitFor });

function after({ headers }: RequestInit, cursor: string): RequestInit {
  const next = new Headers(headers);
  next.delete("Content-Type");
  next.set("Last-Event-ID", cursor);
  return { headers: next };
}

function cancelsOnDisconnect({ forwardedProps }: RunAgentInput): boolean {
  return (forwardedProps as { perdure?: { cancelOnDisconnect?: boolean } } | undefined)?.perdure?.cancelOnDisconnect === true;
}
