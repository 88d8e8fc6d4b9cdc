import { errorFrom } from "./attempts.js";
import { retryAfterOf } from "./backoff.js";
import { MovedError } from "./connection.js";
import { type OpenRequest, type Receiver, windowSize } from "./exchange.js";
import { HttpConnection } from "./http_connection.js";
import { problemOf } from "./problem.js";
import type { ErrorFrame, RequestFrame, ResponseFrame } from "./socket_frames.js";
import type { Endpoint } from "./socket_pool.js";

/** The request of a stream. */
export type SubscribeFrame = Extract<RequestFrame, { type: "subscribe" }>;

interface Subscription {
  frame: SubscribeFrame;
  receiver: Receiver;
  /** The characters that the receiver has not taken. */
  untaken: number;
}

/**
 * The most responses that are open. A browser opens six connections to a host: the others are for commands, lists and the
 * changes of approvals.
 */
export const maxResponses = 3;

/** The most streams of one response that the server accepts. */
const maxStreams = 64;

/** Streams that begin within this time share a response, in milliseconds. */
const collectTime = 20;

/** A response may have this many characters for streams that their readers have closed. Then the others move to a new one. */
const maxUnread = 256 << 10;

/**
 * The streams of all tabs over server-sent events, while a proxy refuses WebSockets. One response of POST /v1/streams has
 * up to 64 streams. The server cannot add a stream to a response, so new streams begin in another response. Before there
 * are more than `maxResponses`, all are closed, and their readers continue after their cursors in one.
 */
export class StreamRequests {
  private waiting: Subscription[] = [];
  private readonly responses = new Set<StreamResponse>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly endpoint: Endpoint) {}

  open(frame: SubscribeFrame, receiver: Receiver): OpenRequest {
    const subscription: Subscription = { frame, receiver, untaken: 0 };
    this.waiting.push(subscription);
    this.timer ??= setTimeout(this.send, collectTime);
    return {
      consume: (size) => void (subscription.untaken -= size),
      close: () => {
        this.waiting = this.waiting.filter((other) => other !== subscription);
        for (const response of this.responses) response.remove(subscription);
      },
    };
  }

  /** Closes all responses. The streams are lost with the error. */
  close(error: Error): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const waiting = this.waiting;
    this.waiting = [];
    for (const response of [...this.responses]) response.close(error);
    for (const { receiver } of waiting) receiver.lose(error);
  }

  private readonly send = (): void => {
    this.timer = undefined;
    if (this.waiting.length === 0) return;
    // The readers of the closed responses open their streams again, and join those that wait.
    if (this.responses.size >= maxResponses) for (const response of [...this.responses]) response.close(new MovedError("the streams of all responses move to one"));
    const streams = this.waiting.splice(0, maxStreams);
    if (this.waiting.length > 0) this.timer ??= setTimeout(this.send, collectTime);
    const response = new StreamResponse(this.endpoint, streams, () => this.responses.delete(response));
    this.responses.add(response);
  };
}

/** One response with several streams. */
class StreamResponse {
  private readonly subscriptions = new Map<string, Subscription>();
  private readonly ended = new AbortController();
  private unread = 0;

  constructor(
    private readonly endpoint: Endpoint,
    streams: readonly Subscription[],
    private readonly onEnd: () => void,
  ) {
    streams.forEach((subscription, i) => this.subscriptions.set(String(i), subscription));
    void this.read();
  }

  remove(subscription: Subscription): void {
    for (const [id, known] of this.subscriptions) if (known === subscription) this.delete(id);
  }

  /** Ends the response. Its streams are lost with the error. */
  close(error: Error): void {
    const lost = [...this.subscriptions.values()];
    this.subscriptions.clear();
    this.end();
    for (const { receiver } of lost) receiver.lose(error);
  }

  private delete(id: string): void {
    this.subscriptions.delete(id);
    if (this.subscriptions.size === 0) this.end();
  }

  private end(): void {
    this.ended.abort();
    this.onEnd();
  }

  private async read(): Promise<void> {
    const { base, fetch, silence } = this.endpoint;
    const { signal } = this.ended;
    let connection: HttpConnection | undefined;
    try {
      const token = await this.endpoint.token();
      const headers: Record<string, string> = { "Content-Type": "application/json", Accept: "text/event-stream" };
      if (token !== undefined) headers.Authorization = `Bearer ${token}`;
      const streams = [...this.subscriptions].map(([id, { frame: { type: _, ...stream } }]) => ({ id, ...stream }));
      const init = { method: "POST", headers, body: JSON.stringify({ streams }) };
      connection = await HttpConnection.open(fetch, { url: `${base}/v1/streams`, init }, silence, signal);
      const { status } = connection.response;
      if (status !== 200) {
        const retryAfter = Math.ceil(retryAfterOf(connection.response.headers) / 1000);
        return this.refuse({ ...problemOf(status, await connection.text()), type: "error", ...(retryAfter > 0 && { retryAfter }) });
      }
      for await (const { hasData, text } of connection.frames()) {
        if (hasData) this.receive(text.slice(text.indexOf("data:") + "data:".length));
      }
      this.close(new Error("the response has ended before its streams"));
    } catch (error) {
      if (!signal.aborted) this.close(errorFrom(error));
    } finally {
      connection?.close();
    }
  }

  private refuse(problem: ErrorFrame): void {
    const refused = [...this.subscriptions.values()];
    this.subscriptions.clear();
    this.end();
    for (const { receiver } of refused) receiver.receive(problem, 0);
  }

  private receive(text: string): void {
    const { id = "", ...frame } = JSON.parse(text) as ResponseFrame & { id?: string };
    const subscription = this.subscriptions.get(id);
    if (!subscription) {
      this.unread += text.length;
      if (this.unread > maxUnread) this.close(new MovedError("the response has streams without a reader"));
      return;
    }
    const { receiver } = subscription;
    if (frame.type === "end" || frame.type === "error") this.delete(id);
    else if (subscription.untaken > windowSize) {
      this.delete(id);
      return receiver.lose(new MovedError("the reader is too slow"));
    }
    subscription.untaken += text.length;
    receiver.receive(frame.type === "ack" ? { ...frame, transport: "sse" } : frame, text.length);
  }
}
