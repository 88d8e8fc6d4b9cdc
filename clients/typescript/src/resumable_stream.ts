import { bodyOf, connectWithRetry, errorFrom } from "./attempts.js";
import { Backoff } from "./backoff.js";
import { type Call, type Connection, MovedError } from "./connection.js";
import { ConnectionLostError, ProblemError, problemOf } from "./problem.js";
import { Progress } from "./progress.js";
import { type Frame, largest, TooLargeError } from "./sse_frames.js";
import type { Transport } from "./transport.js";

/** A stream of the server that a client can resume after any of its cursors. */
export interface Source {
  thread: string;
  /** The run whose end completes the stream; undefined = the stream is that of the thread. */
  run?: string;
  /** For a thread: whether the stream follows later runs. */
  follow?: boolean;
  /** Returns the request for the events after a cursor; undefined = from the beginning. */
  call(cursor: string | undefined, progress: Progress): Call;
  /** Returns the stream of the active run, after the input became steering of it. */
  steered?(run: string): Source;
  /** Called when a run has begun. */
  onRun?(run: string): void;
  /** Called when the agent has received the frames up to a cursor. */
  onCursor?: ((cursor: string) => void) | undefined;
}

const binary = "application/vnd.ag-ui.event+proto";

/**
 * Returns one response that reads a stream over as many connections as necessary. Its body has only complete frames.
 * Frames without a cursor are held back until the next frame with a cursor, because after a lost connection the server
 * sends them again. If the server refuses the first request, its response is returned. A later failure is sent as
 * RUN_ERROR: a body that fails would end a Node process, and a body that ends would look like success.
 */
export async function resumable(source: Source, transport: Transport, signal: AbortSignal): Promise<Response> {
  const stream = new ResumableStream(source, transport, signal);
  let first: Connection | Error;
  try {
    first = await stream.connect();
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    first = errorFrom(error);
  }
  if (!(first instanceof Error)) {
    const { response } = first;
    if (!response.ok || response.headers.get("Content-Type") === binary) return response;
  }
  return new Response(stream.body(first), { headers: { "Content-Type": "text/event-stream" } });
}

/** Yields the frames of a stream. Throws if the server refuses it, if all attempts fail, and when the signal is aborted. */
export async function* resumableFrames(source: Source, transport: Transport, signal: AbortSignal): AsyncGenerator<Frame, void, undefined> {
  const returned = new AbortController();
  const stream = new ResumableStream(source, transport, AbortSignal.any([signal, returned.signal]));
  try {
    yield* stream.frames(await stream.connect());
  } finally {
    returned.abort();
  }
}

class ResumableStream {
  private readonly backoff: Backoff;
  private readonly cancelled = new AbortController();
  private readonly signal: AbortSignal;
  private readonly progress = new Progress();
  private cursor: string | undefined;

  constructor(
    private source: Source,
    private readonly transport: Transport,
    private readonly aborted: AbortSignal,
  ) {
    this.backoff = new Backoff(transport.retry, transport);
    this.signal = AbortSignal.any([aborted, this.cancelled.signal]);
  }

  /** Opens the next connection. lost is the error of the previous one. */
  connect(lost?: Error): Promise<Connection> {
    const open = () => this.transport.open(this.source.call(this.cursor, this.progress), this.signal);
    return connectWithRetry(open, this.backoff, this.signal, lost);
  }

  body(first: Connection | Error): ReadableStream<Uint8Array> {
    const encoder = new TextEncoder();
    const texts = this.texts(first);
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      try {
        const { done, value } = await texts.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value + "\n\n"));
      } catch (error) {
        // HttpAgent turns an abort into a RUN_ERROR, and refuses one that follows a RUN_ERROR.
        if (this.aborted.aborted && this.progress.last === "RUN_ERROR") controller.close();
        else controller.error(this.aborted.aborted ? abortError(this.aborted) : error);
      }
    };
    const cancel = async () => {
      this.cancelled.abort();
      await texts.return();
    };
    // No read-ahead: a slow reader makes the server wait, and this client buffers nothing.
    return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
  }

  /** Yields the frames of all connections. */
  async *frames(first: Connection | Error): AsyncGenerator<Frame, void, undefined> {
    for (let next = first; ; ) {
      if (next instanceof Error) throw next;
      const lost: Error | undefined = yield* this.readConnection(next);
      if (!lost) return;
      next = await this.connect(lost);
    }
  }

  // Yields a RUN_ERROR if the stream cannot continue. Fails only when aborted.
  private async *texts(first: Connection | Error): AsyncGenerator<string, void, undefined> {
    try {
      for await (const { text } of this.frames(first)) yield text;
    } catch (error) {
      if (this.signal.aborted) throw error;
      yield* this.runError(errorFrom(error));
    }
  }

  // Yields the frames of one connection. Returns the error after which another connection must continue the stream.
  private async *readConnection(connection: Connection): AsyncGenerator<Frame, Error | undefined, undefined> {
    try {
      const { response } = connection;
      if (!response.ok) throw new ProblemError(problemOf(response.status, await bodyOf(connection)));
      this.backoff.connected();
      if (response.status === 204) return this.endWithoutEvents();
      if (response.status === 202 && this.source.steered) {
        const { runId } = JSON.parse(await connection.text()) as { runId: string };
        this.source = this.source.steered(runId);
        return new MovedError("the input became steering");
      }
      return yield* this.readCommitted(connection);
    } catch (error) {
      if (this.signal.aborted || isFinal(error)) throw error;
      return errorFrom(error);
    } finally {
      connection.close();
    }
  }

  private async *readCommitted(connection: Connection): AsyncGenerator<Frame, Error | undefined, undefined> {
    const { run, follow } = this.source;
    let held: Frame[] = [];
    let size = 0;
    for await (const frame of connection.frames()) {
      if (frame.hasData) held.push(frame);
      size += frame.text.length;
      if (size > largest) throw new TooLargeError("a group of frames without a cursor");
      if (frame.id === undefined) continue;
      this.cursor = frame.id;
      this.backoff.reset();
      yield* this.release(held);
      this.source.onCursor?.(frame.id);
      if (run !== undefined && this.progress.ended(run)) return;
      [held, size] = [[], 0];
    }
    if (run !== undefined && this.progress.after(held).ended(run)) return yield* this.release(held);
    if (run === undefined && !follow && this.cursor !== undefined && held.length === 0 && !this.progress.open) return;
    return new Error("the connection ended before the stream");
  }

  private *release(frames: readonly Frame[]): Generator<Frame, undefined, undefined> {
    for (const frame of frames) {
      this.progress.observe(frame);
      if (frame.lifecycle?.type === "RUN_STARTED" && frame.lifecycle.runId !== undefined) this.source.onRun?.(frame.lifecycle.runId);
      yield frame;
    }
  }

  private endWithoutEvents(): undefined {
    if (this.source.run === undefined && !this.progress.open) return;
    throw new ConnectionLostError("the server ended the stream before the end of the run");
  }

  private *runError(error: Error): Generator<string, void, undefined> {
    // After a RUN_ERROR an agent accepts only RUN_STARTED.
    if (this.progress.last === "RUN_ERROR") {
      const runId = this.progress.run ?? this.source.run ?? "";
      yield frameOf({ type: "RUN_STARTED", threadId: this.source.thread, runId });
    }
    yield frameOf({ type: "RUN_ERROR", message: error.message, code: codeOf(error) });
  }
}

// Errors that another connection would not change.
const isFinal = (error: unknown) =>
  error instanceof ProblemError || error instanceof TooLargeError || error instanceof ConnectionLostError;

const frameOf = (event: object) => "data: " + JSON.stringify(event);

function codeOf(error: Error): string {
  if (error instanceof TooLargeError) return "too_large";
  if (!(error instanceof ProblemError)) return "connection_lost";
  return error.code === "http_410" ? "log_replaced" : error.code;
}

// Returns the error that HttpAgent recognizes as an abort, for any reason.
function abortError({ reason }: AbortSignal): unknown {
  return reason instanceof DOMException && reason.name === "AbortError" ? reason : new DOMException(String(reason), "AbortError");
}
