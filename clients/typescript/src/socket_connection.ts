import { isTransient } from "./attempts.js";
import type { Connection, TransportName } from "./connection.js";
import type { Exchange, OpenRequest, Receiver } from "./exchange.js";
import { errorOf, type Problem, ProblemError } from "./problem.js";
import type { AckFrame, ErrorFrame, RequestFrame, ResponseFrame } from "./socket_frames.js";
import type { Frame, Lifecycle } from "./sse_frames.js";

/** A request over an exchange, with the same responses as over HTTP. The exchange notices a connection that is lost or silent. */
export class SocketConnection implements Connection, Receiver {
  private readonly queue: { frame: ResponseFrame; size: number }[] = [];
  private failure: Error | undefined;
  private wake: () => void = () => {};
  private request: OpenRequest | undefined;
  private answer: Response | undefined;
  /** How the response arrives. undefined = the server has ended the request with its first frame. */
  transport: TransportName | undefined;

  private constructor(
    private readonly type: RequestFrame["type"],
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", this.abort);
  }

  /** Sends the request. Resolves with its first response. Rejects if the connection is lost, and with the reason of an aborted signal. */
  static async open(exchange: Exchange, frame: RequestFrame, signal: AbortSignal): Promise<SocketConnection> {
    signal.throwIfAborted();
    const connection = new SocketConnection(frame.type, signal);
    try {
      connection.request = exchange.open(frame, connection);
      connection.answer = await connection.begin();
      return connection;
    } catch (error) {
      connection.close();
      // A refused handshake is a response, as over HTTP.
      if (!(error instanceof ProblemError)) throw error;
      connection.answer = problemResponse(error.problem);
      return connection;
    }
  }

  get response(): Response {
    return this.answer!; // open returns no connection without a response
  }

  async *frames(): AsyncGenerator<Frame> {
    for (;;) {
      const frame = await this.next();
      if (frame.type === "event") yield frameOf(frame);
      else if (frame.type === "end") return;
      else if (frame.type === "error") throw errorOfStream(frame);
    }
  }

  text(): Promise<string> {
    return this.response.text();
  }

  blob(): Promise<Blob> {
    return this.response.blob();
  }

  close(): void {
    this.signal.removeEventListener("abort", this.abort);
    this.request?.close();
    this.queue.length = 0;
  }

  receive(frame: ResponseFrame, size: number): void {
    this.queue.push({ frame, size });
    this.wake();
  }

  lose(error: Error): void {
    this.failure ??= error;
    this.wake();
  }

  private readonly abort = (): void => this.wake();

  private async begin(): Promise<Response> {
    for (;;) {
      const frame = await this.next();
      if (frame.type === "ack") {
        this.transport = frame.transport ?? "websocket";
        return this.acknowledged(frame);
      }
      if (frame.type === "end") return new Response(null, { status: 204 });
      if (frame.type === "error") return problemResponse(problemIn(frame, this.type));
    }
  }

  private acknowledged({ runId, cursor, result }: AckFrame): Response {
    const isStream = this.type === "subscribe" || this.type === "approvals" || (this.type === "run" && cursor === undefined);
    if (isStream) return new Response(null, { headers: { "Content-Type": "text/event-stream" } });
    // A run that became steering has the acknowledgement of a steer.
    const body = result ?? (cursor === undefined ? undefined : { runId, cursor });
    const status = cursor === undefined ? 200 : 202;
    return new Response(body === undefined ? "" : JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  }

  // Returns the next frame. After a loss it first returns the frames that arrived before.
  private async next(): Promise<ResponseFrame> {
    for (;;) {
      this.signal.throwIfAborted();
      const received = this.queue.shift();
      if (received) {
        this.request?.consume(received.size);
        return received.frame;
      }
      if (this.failure) throw this.failure;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

function frameOf({ cursor, event }: { cursor?: string; event: { type: string; runId?: string } }): Frame {
  const isLifecycle = event.type === "RUN_STARTED" || event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
  return {
    text: "data: " + JSON.stringify(event),
    hasData: true,
    ...(cursor !== undefined && { id: cursor }),
    ...(isLifecycle && { lifecycle: { type: event.type, runId: String(event.runId) } as Lifecycle }),
  };
}

// The members of a problem without those of the frame. A pointer into the frame becomes one into the body of the HTTP request.
function problemIn({ type: _, retryAfter, pointer, ...problem }: ErrorFrame, request: RequestFrame["type"]): Problem & { retryAfter?: number } {
  const inBody = request === "run" ? pointer?.replace(/^\/input/, "") : pointer;
  return { ...problem, ...(inBody !== undefined && { pointer: inBody }), ...(retryAfter !== undefined && { retryAfter }) };
}

function problemResponse({ retryAfter, ...problem }: Problem & { retryAfter?: number }): Response {
  const headers: Record<string, string> = { "Content-Type": "application/problem+json" };
  if (retryAfter !== undefined) headers["Retry-After"] = String(retryAfter);
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}

// An interrupted stream continues on another connection.
function errorOfStream(frame: ErrorFrame): Error {
  const error = errorOf(problemIn(frame, "subscribe"));
  return isTransient(error.status) ? new Error(error.message) : error;
}
