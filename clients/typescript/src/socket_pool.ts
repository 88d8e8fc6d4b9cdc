import { ApprovalFeed } from "./approval_feed.js";
import { errorFrom } from "./attempts.js";
import { HttpOnlyError, MovedError } from "./connection.js";
import type { Exchange, OpenRequest, Receiver } from "./exchange.js";
import { type Problem, ProblemError, problemOf } from "./problem.js";
import { type HandshakeFailure, handshakeTime, Socket } from "./socket.js";
import type { RequestFrame } from "./socket_frames.js";
import { StreamRequests } from "./stream_requests.js";

/** Creates a WebSocket, as its constructor does. */
export type WebSocketFactory = (url: string, protocols: string[]) => WebSocket;

/** The server of a pool and the credentials of its client. */
export interface Endpoint {
  /** The base URL of the routes, without `/v1`. */
  base: string;
  /** Returns the token; undefined = the browser sends cookies, or the server needs no credentials. Called for each connection. */
  token(): Promise<string | undefined>;
  webSocket: WebSocketFactory;
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** How long the server may take to respond to a ping, in milliseconds. */
  silence: number;
}

const subprotocol = "ag-ui.perdure.v1";

/** How long a socket without requests stays open, in milliseconds. */
const idleTime = 5_000;

/** The pool falls back to HTTP after this many refused handshakes in a row. */
const maxRefusals = 3;

/** The pauses before the first and before later attempts to open a socket during the fallback, in milliseconds. Each doubles the last one. */
const [firstPause, longestPause] = [60_000, 900_000];

/**
 * The sockets to one server. It opens another one when all have the most requests that the server accepts. It also reads
 * the changes of approvals.
 *
 * **Fallback.** A proxy may refuse WebSockets. After three refused handshakes in a row, or one without a response in 5 s,
 * although the server responds over HTTP, the pool reads streams as server-sent events. One response of POST /v1/streams has
 * the streams of many threads, because a browser opens only six connections to a host (see StreamRequests). Commands use
 * plain HTTP requests of their tabs. After a minute the pool tries a socket again, then after longer pauses, at most 15
 * minutes. When one opens, all streams return to it. In both directions the readers continue after their cursors, so that no
 * event is lost or repeated.
 */
export class SocketPool implements Exchange {
  private readonly sockets = new Set<Socket>();
  private readonly idle = new Map<Socket, ReturnType<typeof setTimeout>>();
  private readonly feeds = new Map<string, ApprovalFeed>();
  private refusals = 0; // in a row
  private hasLost = false; // a socket was lost, and none has opened since
  private streams: StreamRequests | undefined; // undefined = WebSockets are in use
  private pause: number;
  private probing: ReturnType<typeof setTimeout> | undefined;

  /** pause is the pause before the first attempt to open a socket during the fallback, in milliseconds. */
  constructor(
    private readonly endpoint: Endpoint,
    private readonly initialPause = firstPause,
  ) {
    this.pause = initialPause;
  }

  open(frame: RequestFrame, receiver: Receiver): OpenRequest {
    if (frame.type === "approvals") return this.feedOf(frame.query).open(frame.after, receiver);
    if (this.streams && frame.type === "subscribe") return this.streams.open(frame, receiver);
    if (this.streams) {
      queueMicrotask(() => receiver.lose(new HttpOnlyError()));
      return { consume() {}, close() {} };
    }
    const socket = [...this.sockets].find(({ hasRoom }) => hasRoom) ?? this.newSocket();
    clearTimeout(this.idle.get(socket));
    return socket.open(frame, receiver);
  }

  /** Closes all connections. The requests are lost with the error. */
  close(error: Error): void {
    clearTimeout(this.probing);
    const { streams } = this;
    this.streams = undefined;
    for (const socket of [...this.sockets]) socket.close(error);
    for (const feed of [...this.feeds.values()]) feed.close(error);
    streams?.close(error);
  }

  private feedOf(query: string): ApprovalFeed {
    const feed = this.feeds.get(query) ?? new ApprovalFeed(this.endpoint, query, () => this.feeds.delete(query));
    this.feeds.set(query, feed);
    return feed;
  }

  private newSocket(): Socket {
    const { silence } = this.endpoint;
    const closeWhenIdle = () => {
      clearTimeout(this.idle.get(socket));
      const close = () => socket.isIdle && socket.close(new Error("the socket was idle"));
      this.idle.set(socket, setTimeout(close, idleTime));
    };
    const socket = new Socket({
      connect: async () => {
        const token = await this.endpoint.token();
        const protocols = token === undefined ? [subprotocol] : [subprotocol, `bearer.${token}`];
        return this.endpoint.webSocket(socketURL(this.endpoint.base), protocols);
      },
      diagnose: (failure) => this.diagnose(failure),
      silence,
      onOpen: () => {
        this.refusals = 0;
        if (socket.isIdle) closeWhenIdle();
        this.recover();
        this.renewFeeds();
      },
      onClose: () => {
        clearTimeout(this.idle.get(socket));
        this.idle.delete(socket);
        this.sockets.delete(socket);
        this.hasLost ||= !socket.isIdle;
        if (this.streams) this.probeLater();
      },
      onIdle: closeWhenIdle,
    });
    this.sockets.add(socket);
    return socket;
  }

  // A browser does not tell why a handshake failed. The same route without an upgrade returns the problem of the server, or
  // 426. A proxy may answer that route itself, and a page of another origin cannot read it. Then a GET of the route of the
  // fallback shows whether the server can be reached: the server answers it with 405.
  private async diagnose(failure: HandshakeFailure): Promise<Error> {
    const handshake = await this.problemAt("/v1/ws").catch(() => undefined);
    if (handshake?.code === "upgrade_required") return this.failed(failure);
    if (handshake && isOfServer(handshake)) return new ProblemError(handshake);
    try {
      const problem = await this.problemAt("/v1/streams");
      if (problem.code === "method_not_allowed") return this.failed(failure);
      if (isOfServer(problem)) return new ProblemError(problem);
      return new Error(`the server cannot be reached: a proxy answers with the status ${problem.status}`);
    } catch (error) {
      return new Error(`the server cannot be reached: ${errorFrom(error).message}`, { cause: error });
    }
  }

  private async problemAt(path: string): Promise<Problem> {
    const token = await this.endpoint.token();
    const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const signal = AbortSignal.timeout(Math.min(this.endpoint.silence, handshakeTime));
    const response = await this.endpoint.fetch(this.endpoint.base + path, { headers, signal });
    return problemOf(response.status, await response.text());
  }

  // Counts a refused handshake, and falls back after the last one or the first one without a response. The readers send their
  // requests again at once: they have lost nothing yet.
  private failed(failure: HandshakeFailure): Error {
    this.refusals++;
    if ((failure === "unanswered" || this.refusals >= maxRefusals) && !this.streams) {
      this.streams = new StreamRequests(this.endpoint);
      this.pause = this.initialPause;
    }
    return new MovedError("a proxy refuses the WebSocket");
  }

  private probeLater(): void {
    clearTimeout(this.probing);
    const jitter = 0.5 + 0.5 * Math.random();
    this.probing = setTimeout(() => this.newSocket(), this.pause * jitter);
    (this.probing as { unref?: () => void }).unref?.(); // must not keep a Node process alive
    this.pause = Math.min(2 * this.pause, longestPause);
  }

  // What ended a socket has probably ended the HTTP responses as well. Some proxies, such as that of Vite, keep those open
  // to the browser, which would notice only by the missing heartbeats.
  private renewFeeds(): void {
    if (!this.hasLost) return;
    this.hasLost = false;
    for (const feed of [...this.feeds.values()]) feed.close(new MovedError("the server has restarted, or the connection was lost"));
  }

  private recover(): void {
    clearTimeout(this.probing);
    const { streams } = this;
    this.streams = undefined;
    streams?.close(new MovedError("the server accepts WebSockets again"));
  }
}

// The problems of a proxy have no code.
const isOfServer = ({ code, status }: Problem) => code !== `http_${status}`;

/** Returns the URL of the WebSocket. In a browser the base URL may be relative to the page. */
export function socketURL(base: string): string {
  const url = new URL(`${base}/v1/ws`, (globalThis as { location?: { href: string } }).location?.href);
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}
