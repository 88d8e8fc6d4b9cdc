import type { HttpAgentFetchFn } from "@ag-ui/client";
import { longestTimer } from "./backoff.js";
import type { Call, Connection } from "./connection.js";
import { FrameReader, type Frame } from "./sse_frames.js";

/** The error of a connection that received neither data nor a heartbeat in time. */
export class SilenceError extends Error {
  override readonly name = "SilenceError";

  constructor(silence: number) {
    super(`received nothing for ${silence} ms`);
  }
}

/**
 * One HTTP request with its response. The connection ends when the signal is aborted, or when it receives nothing for
 * `silence` milliseconds. The server sends heartbeats, so a silent connection is broken.
 */
export class HttpConnection implements Connection {
  private readonly controller = new AbortController();
  private answer: Response | undefined;
  private reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;

  private constructor(
    private readonly silence: number,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", this.abort);
  }

  /** Sends the request. Resolves when the headers of the response have arrived. */
  static async open(fetch: HttpAgentFetchFn, { url, init }: Call, silence: number, signal: AbortSignal): Promise<HttpConnection> {
    signal.throwIfAborted();
    const connection = new HttpConnection(silence, signal);
    try {
      connection.answer = await connection.within(fetch(url, { ...init, signal: connection.controller.signal }));
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  get response(): Response {
    return this.answer!; // open returns no connection without a response
  }

  async *frames(): AsyncGenerator<Frame> {
    const frames = new FrameReader();
    for await (const chunk of this.chunks()) yield* frames.read(chunk);
  }

  text(): Promise<string> {
    return this.within(this.response.text());
  }

  // A file may take longer than the silence, so each chunk restarts the time.
  async blob(): Promise<Blob> {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for await (const chunk of this.chunks()) chunks.push(chunk);
    return new Blob(chunks, { type: this.response.headers.get("Content-Type") ?? "" });
  }

  close(): void {
    this.signal.removeEventListener("abort", this.abort);
    this.controller.abort();
    // For a fetch that ignores its signal. cancel rejects if the body has ended or is locked, which is no error here.
    (this.reader ?? this.answer?.body)?.cancel().catch(() => {});
  }

  private readonly abort = (): void => this.controller.abort(this.signal.reason);

  private async *chunks(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    this.reader = this.response.body?.getReader();
    for (;;) {
      const chunk = await this.within(this.reader?.read());
      if (chunk?.value) yield chunk.value;
      if (!chunk || chunk.done) return;
    }
  }

  // Rejects when the request ends, even if the promise ignores the signal.
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
