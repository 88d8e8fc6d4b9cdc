import type { HttpAgentFetchFn } from "@ag-ui/client";
import { longestTimer } from "./backoff.js";
import { FrameReader, type Frame } from "./frames.js";

export interface Call {
  url: string;
  init: RequestInit;
}

/** Nothing came for longer than the server ever is silent. */
export class SilenceError extends Error {
  override readonly name = "SilenceError";

  constructor(silence: number) {
    super(`nothing came for ${silence} ms`);
  }
}

/**
 * One HTTP exchange. It ends when the signal is aborted, and when nothing comes for as long as
 * `silence` (in milliseconds): a connection that broke without a word looks like a server that has
 * nothing to say, but the server sends a comment now and then.
 */
export class Connection {
  private readonly controller = new AbortController();
  private answer: Response | undefined;
  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  private constructor(
    private readonly silence: number,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", this.abort);
  }

  /** Resolves when the answer's headers are there. */
  static async open(fetch: HttpAgentFetchFn, { url, init }: Call, silence: number, signal: AbortSignal): Promise<Connection> {
    signal.throwIfAborted();
    const connection = new Connection(silence, signal);
    try {
      connection.answer = await connection.within(fetch(url, { ...init, signal: connection.controller.signal }));
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  get response(): Response {
    return this.answer!; // open gives nobody a connection without one
  }

  /** The whole frames that come, until the body ends. */
  async *frames(): AsyncGenerator<Frame> {
    this.reader = this.response.body?.getReader();
    const frames = new FrameReader();
    for (;;) {
      const chunk = await this.within(this.reader?.read());
      if (chunk?.value) yield* frames.read(chunk.value);
      if (!chunk || chunk.done) return;
    }
  }

  /** The whole body. */
  text(): Promise<string> {
    return this.within(this.response.text());
  }

  /** Ends the exchange, if it has not ended. */
  close(): void {
    this.signal.removeEventListener("abort", this.abort);
    this.controller.abort();
    // For a fetch that does not mind its signal. It is no news that a body has ended or is being read.
    (this.reader ?? this.answer?.body)?.cancel().catch(() => {});
  }

  private readonly abort = (): void => this.controller.abort(this.signal.reason);

  // What this waits for ends with the exchange, whether it minds the signal or not.
  private within<T>(promise: T | Promise<T>): Promise<T> {
    const { signal } = this.controller;
    return new Promise((resolve, reject) => {
      const silent = () => this.controller.abort(new SilenceError(this.silence));
      const timer = this.silence <= longestTimer ? setTimeout(silent, this.silence) : undefined;
      const fail = () => settle(() => reject(signal.reason));
      const settle = (then: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", fail);
        then();
      };
      signal.addEventListener("abort", fail);
      if (signal.aborted) fail();
      Promise.resolve(promise).then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
    });
  }
}
