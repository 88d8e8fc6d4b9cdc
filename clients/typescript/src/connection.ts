import type { Frame } from "./sse_frames.js";
import type { RequestFrame } from "./socket_frames.js";

/** A request to the server, in its HTTP form and, if the WebSocket has it, as a frame. */
export interface Call {
  url: string;
  init: RequestInit;
  frame?: RequestFrame | undefined;
  /** The longest silence in milliseconds, if it is not that of the other requests: the server answers an upload at its end. */
  silence?: number | undefined;
}

/** How the events of a stream arrive: over a WebSocket, or as server-sent events over HTTP. */
export type TransportName = "websocket" | "sse";

/** One attempt of a request, with its response. The owner closes it. */
export interface Connection {
  /** The status and the headers. Read the body with `frames`, `text` or `blob`. */
  readonly response: Response;
  /** Yields complete frames until the response ends. Throws if the connection is lost, and a ProblemError if the server ends the stream with a problem. */
  frames(): AsyncGenerator<Frame>;
  /** Reads the whole body. */
  text(): Promise<string>;
  /** Reads the whole body as bytes. */
  blob(): Promise<Blob>;
  /** Ends the request, if it has not ended. */
  close(): void;
}

/** The request has to be sent over HTTP, because a proxy refuses WebSockets. */
export class HttpOnlyError extends Error {
  override readonly name = "HttpOnlyError";

  constructor() {
    super("a proxy refuses WebSockets");
  }
}

/**
 * The request continues on another connection: another tab holds the sockets, or this reader was too slow for the last one.
 * The next attempt needs no pause.
 */
export class MovedError extends Error {
  override readonly name = "MovedError";
}
