import type { RequestFrame, ResponseFrame } from "./socket_frames.js";

/** Receives the responses to one request, in their order. */
export interface Receiver {
  /** size is the number of characters of the frame. The receiver reports it with `consume` when it has taken the frame. */
  receive(frame: ResponseFrame, size: number): void;
  /** Ends the request without its last frame. After a MovedError the receiver sends the request again at once. */
  lose(error: Error): void;
}

/** A request that has not ended. */
export interface OpenRequest {
  /** Reports that the receiver has taken frames of this size, so that more may follow. */
  consume(size: number): void;
  /** Ends the request. The receiver is not called again. A run and a command continue on the server. */
  close(): void;
}

/**
 * Sends requests over WebSockets. While a proxy refuses them, it sends streams over HTTP, and loses every other request with
 * an HttpOnlyError: its tab then sends it over HTTP.
 */
export interface Exchange {
  open(frame: RequestFrame, receiver: Receiver): OpenRequest;
}

/**
 * The most characters of frames that a receiver may leave untaken. A slower receiver loses its request with a MovedError,
 * takes what it has, and sends the request again with its cursor. So a request needs bounded memory in every tab.
 */
export const windowSize = 4 << 20;
