import type { HttpAgentFetchFn } from "@ag-ui/client";
import type { Policy, Retry } from "./backoff.js";
import { type Call, type Connection, HttpOnlyError, MovedError, type TransportName } from "./connection.js";
import type { Exchange } from "./exchange.js";
import { HttpConnection } from "./http_connection.js";
import { SharedExchange } from "./shared_exchange.js";
import { SocketConnection } from "./socket_connection.js";
import { SocketPool, type WebSocketFactory } from "./socket_pool.js";

/** Returns a token, or undefined if there is none. */
export type TokenSource = () => string | undefined | Promise<string | undefined>;

/** The requests of an agent or a client, and when to repeat them. */
export interface Transport {
  /** Sends a request. Resolves when the response has begun. */
  open(call: Call, signal: AbortSignal): Promise<Connection>;
  retry: Policy;
  onRetry: ((retry: Retry) => void) | undefined;
  onConnected: (() => void) | undefined;
  onReconnected: (() => void) | undefined;
}

/** The options of the requests. */
export interface RequestOptions {
  base: string;
  fetch: HttpAgentFetchFn;
  token: TokenSource | undefined;
  /** The longest silence of a connection, in milliseconds. */
  silence: number;
  /** undefined = all requests use HTTP. */
  webSocket: WebSocketFactory | undefined;
  /** Called when requests with a frame use another transport than before; the first is "websocket". */
  onTransportChanged: ((transport: TransportName) => void) | undefined;
}

/** Returns the function that sends requests: those with a frame over a WebSocket, if there is one, and the others over HTTP. */
export function opener(options: RequestOptions): Transport["open"] {
  const { base, fetch, token, silence, webSocket } = options;
  const changed = changeListener(options.onTransportChanged);
  return async (call, signal) => {
    const headers = new Headers(call.init.headers);
    const current = await token?.();
    if (current !== undefined) headers.set("Authorization", `Bearer ${current}`);
    const overHttp = () => HttpConnection.open(fetch, { ...call, init: { ...call.init, headers } }, call.silence ?? silence, signal);
    if (!webSocket || !call.frame) return overHttp();
    const own = bearerOf(headers);
    const exchange = await exchangeOf({ base, fetch, silence, webSocket, token: async () => (token ? await token() : own) }, own);
    try {
      const connection = await SocketConnection.open(exchange, call.frame, signal);
      if (connection.transport) changed(connection.transport);
      return connection;
    } catch (error) {
      if (!(error instanceof HttpOnlyError)) throw error;
      changed("sse");
      if (call.frame.type !== "run") return overHttp();
      headers.set("Accept", "text/event-stream");
      return new RunStart(await overHttp());
    }
  };
}

/** Returns a function that calls the listener when a transport differs from the last one; the first is "websocket". */
export function changeListener(listener: ((transport: TransportName) => void) | undefined): (transport: TransportName) => void {
  let last: TransportName = "websocket";
  return (transport) => {
    if (transport === last) return;
    last = transport;
    listener?.(transport);
  };
}

/**
 * The response to the start of a run during the fallback to HTTP. It ends soon after the run has begun, so that it does not
 * occupy a connection of the browser: the run then continues in a response that has the streams of all tabs.
 */
class RunStart implements Connection {
  constructor(private readonly connection: Connection) {}

  get response(): Response {
    return this.connection.response;
  }

  async *frames(): ReturnType<Connection["frames"]> {
    let isActive = false;
    for await (const frame of this.connection.frames()) {
      if (frame.lifecycle) isActive = frame.lifecycle.type === "RUN_STARTED";
      yield frame;
      if (isActive && frame.id !== undefined) throw new MovedError("the run continues with the other streams");
    }
  }

  text(): Promise<string> {
    return this.connection.text();
  }

  blob(): Promise<Blob> {
    return this.connection.blob();
  }

  close(): void {
    this.connection.close();
  }
}

// Returns the token in the Authorization header. A WebSocket of a browser can send no other header.
function bearerOf(headers: Headers): string | undefined {
  const authorization = headers.get("Authorization");
  if (authorization === null) return undefined;
  const token = /^Bearer\s+(\S+)$/i.exec(authorization)?.[1];
  if (token === undefined) throw new TypeError('a WebSocket can only send "Authorization: Bearer …": set transport: "sse"');
  return token;
}

type Endpoint = ConstructorParameters<typeof SocketPool>[0];

// The exchanges of this page, with the newest options of each: a token expires, and its function may be replaced.
const exchanges = new Map<string, { exchange: Exchange; endpoint: Endpoint }>();

async function exchangeOf(endpoint: Endpoint, token: string | undefined): Promise<Exchange> {
  const key = `perdure ${endpoint.base} ${await identityOf(token)}`;
  const known = exchanges.get(key);
  if (known) {
    known.endpoint = endpoint;
    return known.exchange;
  }
  const entry = { endpoint } as { exchange: Exchange; endpoint: Endpoint };
  const newPool = () =>
    new SocketPool({
      base: endpoint.base,
      silence: endpoint.silence,
      token: () => entry.endpoint.token(),
      webSocket: (url, protocols) => entry.endpoint.webSocket(url, protocols),
      fetch: (url, init) => entry.endpoint.fetch(url, init),
    });
  const { locks } = (globalThis.navigator ?? {}) as { locks?: LockManager };
  const isShared = locks !== undefined && typeof BroadcastChannel !== "undefined" && isBrowser();
  entry.exchange = isShared ? new SharedExchange(key, { locks, channel: (name) => new BroadcastChannel(name) }, newPool) : newPool();
  exchanges.set(key, entry);
  return entry.exchange;
}

/** Reports whether the code runs in a page or a worker of a browser. */
export const isBrowser = () => "location" in globalThis;

// Claims of a token that differ between the tokens of one session.
const renewedClaims = new Set(["exp", "iat", "nbf", "jti", "auth_time", "nonce", "at_hash", "c_hash", "uti", "rh", "aio"]);

let lastIdentity: { token: string | undefined; identity: string } | undefined;

/**
 * Returns a name for the caller that a token identifies. All tokens of a session have the same one. A token that is not a
 * JWT identifies the caller by itself. Only tabs with the same name share sockets.
 */
export async function identityOf(token: string | undefined): Promise<string> {
  if (token === undefined) return "";
  if (lastIdentity?.token === token) return lastIdentity.identity;
  const identity = await digestOf(claimsOf(token) ?? token);
  lastIdentity = { token, identity };
  return identity;
}

function claimsOf(token: string): string | undefined {
  try {
    const payload = atob(token.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/"));
    const claims = Object.entries(JSON.parse(payload) as object).filter(([name]) => !renewedClaims.has(name));
    return JSON.stringify(claims.sort(([a], [b]) => (a < b ? -1 : 1)));
  } catch {
    return undefined; // not a JWT
  }
}

async function digestOf(text: string): Promise<string> {
  // Pages of insecure origins have no digest. They share no sockets, so the name stays in the page.
  const { subtle } = globalThis.crypto ?? {};
  if (!subtle) return text;
  const digest = await subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
