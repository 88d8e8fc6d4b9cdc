import { errorFrom } from "./attempts.js";
import { MovedError } from "./connection.js";
import { type OpenRequest, type Receiver, windowSize } from "./exchange.js";
import { HttpConnection } from "./http_connection.js";
import { problemOf } from "./problem.js";
import { withQuery } from "./routes.js";
import type { EventFrame, ResponseFrame } from "./socket_frames.js";
import type { Endpoint } from "./socket_pool.js";

interface Subscriber {
  receiver: Receiver;
  /** The last cursor that the subscriber has. */
  last: string | undefined;
  isAcknowledged: boolean;
  /** The characters that the receiver has not taken. */
  untaken: number;
}

/**
 * The changes of approvals with one filter, for the readers of all tabs. It has one HTTP connection, however many readers
 * there are. A reader that begins at an earlier cursor makes it begin there again, and each reader receives only what
 * follows its own cursor.
 */
export class ApprovalFeed {
  private readonly subscribers = new Set<Subscriber>();
  private position: string | undefined;
  private isConnected = false;
  private attempt: AbortController | undefined;

  /** onEmpty is called when the last reader has left. */
  constructor(
    private readonly endpoint: Endpoint,
    private readonly query: string,
    private readonly onEmpty: () => void,
  ) {}

  open(after: string | undefined, receiver: Receiver): OpenRequest {
    const subscriber: Subscriber = { receiver, last: after, isAcknowledged: false, untaken: 0 };
    this.subscribers.add(subscriber);
    if (!this.attempt || (after !== undefined && (this.position === undefined || after < this.position))) void this.read(after);
    else if (this.isConnected) this.acknowledge();
    return {
      consume: (size) => void (subscriber.untaken -= size),
      close: () => this.remove(subscriber),
    };
  }

  /** Loses all readers. */
  close(error: Error): void {
    this.attempt?.abort();
    this.attempt = undefined;
    for (const subscriber of [...this.subscribers]) {
      this.remove(subscriber);
      subscriber.receiver.lose(error);
    }
  }

  private remove(subscriber: Subscriber): void {
    if (!this.subscribers.delete(subscriber) || this.subscribers.size > 0) return;
    this.attempt?.abort();
    this.attempt = undefined;
    this.onEmpty();
  }

  private async read(after: string | undefined): Promise<void> {
    this.attempt?.abort();
    const { signal } = (this.attempt = new AbortController());
    this.position = after;
    this.isConnected = false;
    const { base, fetch, silence } = this.endpoint;
    let connection: HttpConnection | undefined;
    try {
      const token = await this.endpoint.token();
      const headers: Record<string, string> = { Accept: "text/event-stream", ...(token !== undefined && { Authorization: `Bearer ${token}` }) };
      const url = withQuery(`${base}/v1/approvals/events${this.query}`, { after });
      connection = await HttpConnection.open(fetch, { url, init: { headers } }, silence, signal);
      const { status } = connection.response;
      if (status !== 200) return this.refuse({ ...problemOf(status, await connection.text()), type: "error" });
      this.isConnected = true;
      this.acknowledge();
      for await (const { id, hasData, text } of connection.frames()) {
        if (id !== undefined && hasData) this.send({ type: "event", cursor: id, event: JSON.parse(text.slice(text.indexOf("data:") + 5)) });
      }
      this.close(new Error("the stream of approvals has ended"));
    } catch (error) {
      if (!signal.aborted) this.close(errorFrom(error));
    } finally {
      connection?.close();
    }
  }

  private refuse(problem: ResponseFrame): void {
    for (const subscriber of [...this.subscribers]) {
      this.remove(subscriber);
      subscriber.receiver.receive(problem, 0);
    }
  }

  private acknowledge(): void {
    for (const subscriber of [...this.subscribers]) {
      if (subscriber.isAcknowledged) continue;
      subscriber.isAcknowledged = true;
      subscriber.receiver.receive({ type: "ack", request: "approvals" }, 0);
    }
  }

  private send(frame: EventFrame & { cursor: string }): void {
    const { cursor } = frame;
    const size = JSON.stringify(frame).length;
    this.position = cursor;
    for (const subscriber of [...this.subscribers]) {
      if (subscriber.last !== undefined && cursor <= subscriber.last) continue;
      if (subscriber.untaken > windowSize) {
        this.remove(subscriber);
        subscriber.receiver.lose(new MovedError("the reader is too slow"));
        continue;
      }
      subscriber.last = cursor;
      subscriber.untaken += size;
      subscriber.receiver.receive(frame, size);
    }
  }
}
