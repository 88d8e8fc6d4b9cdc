import { ApprovalFeed } from "./approval_feed.js";
import type { Exchange, OpenRequest, Receiver } from "./exchange.js";
import { errorFrom } from "./attempts.js";
import { ProblemError, problemOf } from "./problem.js";
import { Socket } from "./socket.js";
import type { RequestFrame } from "./socket_frames.js";

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

/** The sockets to one server. It opens another one when all have the most requests that the server accepts. It also reads the changes of approvals. */
export class SocketPool implements Exchange {
  private readonly sockets = new Set<Socket>();
  private readonly idle = new Map<Socket, ReturnType<typeof setTimeout>>();

  private readonly feeds = new Map<string, ApprovalFeed>();

  constructor(private readonly endpoint: Endpoint) {}

  open(frame: RequestFrame, receiver: Receiver): OpenRequest {
    if (frame.type === "approvals") return this.feedOf(frame.query).open(frame.after, receiver);
    const socket = [...this.sockets].find(({ hasRoom }) => hasRoom) ?? this.newSocket();
    clearTimeout(this.idle.get(socket));
    return socket.open(frame, receiver);
  }

  /** Closes all sockets. The requests are lost with the error. */
  close(error: Error): void {
    for (const socket of this.sockets) socket.close(error);
    for (const feed of this.feeds.values()) feed.close(error);
  }

  private feedOf(query: string): ApprovalFeed {
    const feed = this.feeds.get(query) ?? new ApprovalFeed(this.endpoint, query, () => this.feeds.delete(query));
    this.feeds.set(query, feed);
    return feed;
  }

  private newSocket(): Socket {
    const { silence } = this.endpoint;
    const socket = new Socket({
      connect: async () => {
        const token = await this.endpoint.token();
        const protocols = token === undefined ? [subprotocol] : [subprotocol, `bearer.${token}`];
        return this.endpoint.webSocket(socketURL(this.endpoint.base), protocols);
      },
      diagnose: () => this.diagnose(),
      silence,
      onClose: () => {
        clearTimeout(this.idle.get(socket));
        this.idle.delete(socket);
        this.sockets.delete(socket);
      },
      onIdle: () => {
        clearTimeout(this.idle.get(socket));
        const close = () => socket.isIdle && socket.close(new Error("the socket was idle"));
        this.idle.set(socket, setTimeout(close, idleTime));
      },
    });
    this.sockets.add(socket);
    return socket;
  }

  // A browser does not tell why a handshake failed. The same route without an upgrade returns the problem, or 426.
  private async diagnose(): Promise<Error> {
    try {
      const token = await this.endpoint.token();
      const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      const signal = AbortSignal.timeout(Math.min(this.endpoint.silence, 10_000));
      const response = await this.endpoint.fetch(`${this.endpoint.base}/v1/ws`, { headers, signal });
      const problem = problemOf(response.status, await response.text());
      if (response.status >= 400 && response.status !== 426) return new ProblemError(problem);
      return new Error("the WebSocket handshake failed, although the server accepts WebSockets: a proxy may refuse them");
    } catch (error) {
      return new Error(`the server cannot be reached: ${errorFrom(error).message}`, { cause: error });
    }
  }
}

/** Returns the URL of the WebSocket. In a browser the base URL may be relative to the page. */
export function socketURL(base: string): string {
  const url = new URL(`${base}/v1/ws`, (globalThis as { location?: { href: string } }).location?.href);
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}
