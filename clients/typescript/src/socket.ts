import { MovedError } from "./connection.js";
import { type OpenRequest, type Receiver, windowSize } from "./exchange.js";
import { isLast, maxFrameBytes, type RequestFrame, type ResponseFrame } from "./socket_frames.js";

/** The most open requests of one WebSocket that the server accepts. */
const maxRequests = 64;

const pingID = "ping";

interface Entry {
  type: RequestFrame["type"];
  /** undefined = the receiver has closed the request, and the server has not ended it yet. */
  receiver: Receiver | undefined;
  /** The characters that the receiver has not taken. */
  untaken: number;
}

/** How long a handshake, or a request that finds out why it has failed, may take, in milliseconds. A proxy may drop the response. */
export const handshakeTime = 5_000;

/** How a handshake failed: it was refused, or it had no response in time. */
export type HandshakeFailure = "refused" | "unanswered";

/** How a Socket connects. */
export interface SocketOptions {
  /** Creates the WebSocket. Rejects if there are no credentials. */
  connect(): Promise<WebSocket>;
  /**
   * Called once if the handshake fails, or has no response in time. Returns the reason: a ProblemError if the server refuses
   * the handshake.
   */
  diagnose(failure: HandshakeFailure): Promise<Error>;
  /** How long the server may take to respond to a ping, in milliseconds. */
  silence: number;
  /** Called when the handshake has succeeded. */
  onOpen(): void;
  /** Called when the socket has closed. It takes no more requests. */
  onClose(socket: Socket): void;
  /** Called when the last request has ended. */
  onIdle(socket: Socket): void;
}

/** One WebSocket with its requests. When it closes, all of its requests are lost. */
export class Socket {
  private readonly entries = new Map<string, Entry>();
  private webSocket: WebSocket | undefined;
  private unsent: string[] | undefined = []; // undefined = the socket is open
  private limit = maxRequests;
  private last = 0;
  private isClosed = false;
  private isFailing = false; // the handshake has failed, and its reason is not known yet
  private waitsSince = 0; // when a ping was sent that has no response; 0 = none
  private readonly ticker: ReturnType<typeof setInterval>;
  private handshake: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: SocketOptions) {
    this.ticker = setInterval(this.tick, Math.min(options.silence / 3, 15_000));
    void this.connect();
  }

  /** Whether the socket can take another request. */
  get hasRoom(): boolean {
    return !this.isClosed && !this.isFailing && this.entries.size < this.limit;
  }

  get isIdle(): boolean {
    return this.entries.size === 0;
  }

  open(request: RequestFrame, receiver: Receiver): OpenRequest {
    const id = String(++this.last);
    const text = JSON.stringify({ ...request, id });
    if (text.length > maxFrameBytes) {
      const refusal = { type: "error", status: 413, code: "too_large", detail: `the request has more than ${maxFrameBytes} bytes` } as const;
      queueMicrotask(() => receiver.receive(refusal, 0));
      return { consume() {}, close() {} };
    }
    const entry: Entry = { type: request.type, receiver, untaken: 0 };
    this.entries.set(id, entry);
    this.send(text);
    return {
      consume: (size) => void (entry.untaken -= size),
      close: () => this.leave(id, entry),
    };
  }

  close(error: Error): void {
    if (this.isClosed) return;
    this.isClosed = true;
    clearInterval(this.ticker);
    clearTimeout(this.handshake);
    this.webSocket?.close(1000);
    this.options.onClose(this);
    for (const { receiver } of this.entries.values()) receiver?.lose(error);
    this.entries.clear();
  }

  private async connect(): Promise<void> {
    try {
      const webSocket = await this.options.connect();
      if (this.isClosed) return webSocket.close();
      this.webSocket = webSocket;
      this.handshake = setTimeout(() => void this.fail("unanswered"), Math.min(this.options.silence, handshakeTime));
      webSocket.onopen = () => {
        if (this.isClosed || this.isFailing) return;
        clearTimeout(this.handshake);
        this.options.onOpen();
        const unsent = this.unsent ?? [];
        this.unsent = undefined;
        unsent.forEach((text) => webSocket.send(text));
      };
      webSocket.onerror = () => {}; // a close follows
      webSocket.onmessage = ({ data }) => this.receive(String(data));
      webSocket.onclose = ({ code }) => {
        if (!this.unsent) this.close(new Error(`the WebSocket was closed with code ${code}`));
        else void this.fail("refused");
      };
    } catch (error) {
      this.close(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private async fail(failure: HandshakeFailure): Promise<void> {
    if (this.isClosed || this.isFailing || !this.unsent) return;
    this.isFailing = true;
    this.close(await this.options.diagnose(failure));
  }

  private send(text: string): void {
    if (this.unsent) this.unsent.push(text);
    else this.webSocket!.send(text);
  }

  private receive(text: string): void {
    this.waitsSince = 0;
    const { id, ...frame } = JSON.parse(text) as ResponseFrame & { id?: string };
    const entry = id === undefined ? undefined : this.entries.get(id);
    if (!entry) return;
    const { receiver } = entry;
    // After an unsubscribe, the server sends its ack last.
    if (receiver ? isLast(entry.type, frame) : frame.type !== "event") this.remove(id!);
    if (!receiver) return;
    // A server that refuses the only request of a socket is overloaded: then the reader waits before its next attempt.
    if (frame.type === "error" && frame.code === "too_many_streams" && !this.isIdle) {
      this.limit = this.entries.size;
      return receiver.lose(new MovedError("the WebSocket has too many open requests"));
    }
    if (entry.untaken > windowSize) {
      this.leave(id!, entry);
      return receiver.lose(new MovedError("the reader is too slow"));
    }
    entry.untaken += text.length;
    receiver.receive(frame, text.length);
  }

  // A command completes on the server, so only a stream is unsubscribed.
  private leave(id: string, entry: Entry): void {
    if (!entry.receiver || this.entries.get(id) !== entry) return;
    entry.receiver = undefined;
    if (entry.type === "run" || entry.type === "subscribe") this.send(JSON.stringify({ type: "unsubscribe", id }));
  }

  private remove(id: string): void {
    this.entries.delete(id);
    if (this.isIdle) this.options.onIdle(this);
  }

  // A browser may delay this timer by a minute in a page in the background. So only a ping without a response counts.
  private readonly tick = (): void => {
    const { silence } = this.options;
    if (this.waitsSince > 0 && Date.now() - this.waitsSince >= silence) {
      return this.close(new Error(`the server did not respond for ${silence} ms`));
    }
    if (this.waitsSince > 0 || this.unsent || this.isIdle) return;
    this.waitsSince = Date.now();
    this.send(JSON.stringify({ type: "ping", id: pingID }));
  };
}

