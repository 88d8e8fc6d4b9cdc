import type { HttpAgentConfig, Interrupt } from "@ag-ui/client";
import { policyOf, type Retry, type RetryOptions } from "./backoff.js";
import { agentIn, baseOf, runsURL } from "./routes.js";
import type { TransportName } from "./connection.js";
import type { WebSocketFactory } from "./socket_pool.js";
import { isBrowser, opener, type TokenSource, type Transport } from "./transport.js";

/** Options of requests to a server. */
export interface PerdureConfig {
  /**
   * How runs, streams and their commands are sent. `websocket`: over WebSockets, which all tabs of an origin with the same
   * server and credentials share, and over HTTP while a proxy refuses WebSockets. `sse`: over HTTP, each stream with a connection of its own. Default: `websocket` in
   * browsers, unless `fetch` is set, and `sse` elsewhere.
   */
  transport?: TransportName;
  /**
   * A token or an API key, sent as `Authorization: Bearer …`. A function is called before each request and each
   * WebSocket, so that it can return a new token before the last one expires.
   */
  token?: string | TokenSource;
  /** The fetch function. Default: the global fetch. */
  fetch?: HttpAgentConfig["fetch"];
  /** Creates a WebSocket. Default: the global WebSocket. Node has one since version 22. */
  webSocket?: WebSocketFactory;
  /** When to repeat a request after the connection is lost or the server is unavailable. */
  retry?: RetryOptions;
  /**
   * The silence, in milliseconds, after which the client treats a connection as lost. The server sends a heartbeat at
   * least every 15 s. Default 45,000. With `Infinity` the client never closes a silent connection.
   */
  silence?: number;
  /** Called before each pause, so that a user interface can show "reconnecting". */
  onRetry?: (retry: Retry) => void;
  /** Called when the server has accepted a request or a stream: the first time, and again after `onRetry`. */
  onConnected?: () => void;
  /** Called when the server has accepted a request or a stream again after `onRetry`. */
  onReconnected?: () => void;
  /**
   * Called with `sse` when streams move to HTTP, because a proxy refuses WebSockets, and with `websocket` when they have moved
   * back. No event is lost. Streams of HTTP may be slower to begin.
   */
  onTransportChanged?: (transport: TransportName) => void;
}

/** Options of a PerdureAgent: those of HttpAgent, the address of the agent, and the options of requests. */
export interface PerdureAgentConfig extends Omit<HttpAgentConfig, "url" | "fetch">, PerdureConfig {
  /** The agent's run endpoint, `{baseUrl}/v1/agents/{agent}/runs`. Alternatively set `baseUrl` and `agent`. */
  url?: string;
  /**
   * The base URL of the server's routes, without `/v1`. Default: derived from `url`. Required if a proxy serves the run
   * endpoint at another path.
   */
  baseUrl?: string;
  /** The agent's name. */
  agent?: string;
  /** Whether `connectAgent` follows later runs until it is aborted. Default false. */
  follow?: boolean;
  /** Called when the server retracts what a failed attempt has streamed. A MESSAGES_SNAPSHOT without it follows. */
  onRetracted?: ((retraction: Retraction) => void) | undefined;
  /** Called when the stream shows that an interrupt is resolved, by this client or by another one. */
  onDecided?: ((decided: Decided) => void) | undefined;
}

/** Why the server retracts a part of the stream. */
export interface Retraction {
  /** `retry`: another attempt follows. `failed`: none does. */
  reason: "retry" | "failed";
}

/** An interrupt of a thread that is resolved. */
export interface Decided {
  threadId: string;
  /** The interrupt as it was while it was open. */
  interrupt: Interrupt;
}

const defaultSilence = 45_000;

/** Returns the URL of the run endpoint. Throws a TypeError if an option is missing. */
export function urlOf({ url, baseUrl, agent }: PerdureAgentConfig): string {
  if (url !== undefined) return url;
  if (baseUrl === undefined || agent === undefined) throw new TypeError("set url, or baseUrl and agent");
  return runsURL(trimmed(baseUrl), agent);
}

/** Returns the base URL of the routes. Throws a TypeError if the options do not have it. */
export function baseUrlOf(config: PerdureAgentConfig): string {
  const base = config.baseUrl === undefined ? baseOf(urlOf(config)) : trimmed(config.baseUrl);
  if (base === undefined) throw new TypeError(`${config.url} does not end with /v1/agents/{agent}/runs: set baseUrl`);
  return base;
}

/** Returns the transport. Throws a RangeError or a TypeError that names an invalid option. */
export function transportOf(config: PerdureConfig, base: string): Transport {
  const { silence = defaultSilence, token } = config;
  if (!(silence > 0)) throw new RangeError(`silence must be a number above 0, not ${silence}`);
  return {
    open: opener({
      base,
      // A browser's fetch must be called on its window.
      fetch: config.fetch ?? ((url, init) => fetch(url, init)),
      token: typeof token === "string" ? () => token : token,
      silence,
      webSocket: webSocketOf(config),
      onTransportChanged: config.onTransportChanged,
    }),
    retry: policyOf(config.retry),
    onRetry: config.onRetry,
    onConnected: config.onConnected,
    onReconnected: config.onReconnected,
  };
}

// Returns undefined if requests use HTTP only.
function webSocketOf({ transport, fetch, webSocket }: PerdureConfig): WebSocketFactory | undefined {
  const hasWebSocket = webSocket !== undefined || typeof WebSocket !== "undefined";
  const chosen = transport ?? (isBrowser() && hasWebSocket && fetch === undefined ? "websocket" : "sse");
  if (chosen === "sse") return undefined;
  if (chosen !== "websocket") throw new TypeError(`transport must be "websocket" or "sse", not ${JSON.stringify(chosen)}`);
  if (!hasWebSocket) throw new TypeError('transport: "websocket" needs the option webSocket, because there is no global WebSocket');
  return webSocket ?? ((url, protocols) => new WebSocket(url, protocols));
}

/** Returns the transport of the first stream. */
export const firstTransportOf = (config: PerdureConfig): TransportName => (webSocketOf(config) ? "websocket" : "sse");

/** Returns the name of the agent, or undefined if the options have only a URL of another form: it has no frame. */
export const agentNameOf = ({ agent, url }: PerdureAgentConfig) => (url === undefined ? agent : agentIn(url));

/** Returns a base URL without slashes at its end. */
export const trimmed = (base: string) => base.replace(/\/+$/, "");
