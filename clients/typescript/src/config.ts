import type { HttpAgentConfig } from "@ag-ui/client";
import { policyOf, type Retry, type RetryOptions } from "./backoff.js";
import { baseOf, runsURL } from "./routes.js";
import type { Transport } from "./transport.js";

/** Options of requests to a server. */
export interface PerdureConfig {
  /** The fetch function. Default: the global fetch. */
  fetch?: HttpAgentConfig["fetch"];
  /** When to repeat a request after the connection is lost or the server is unavailable. */
  retry?: RetryOptions;
  /**
   * The silence, in milliseconds, after which the client treats a connection as lost. The server sends a heartbeat at
   * least every 15 s. Default 45,000. With `Infinity` the client never closes a silent connection.
   */
  silence?: number;
  /** Called before each pause, so that a user interface can show "reconnecting". */
  onRetry?: (retry: Retry) => void;
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

/** Returns the options of requests. Throws a RangeError that names an invalid option. */
export function transportOf(config: PerdureConfig): Transport {
  const { silence = defaultSilence } = config;
  if (!(silence > 0)) throw new RangeError(`silence must be a number above 0, not ${silence}`);
  return {
    // A browser's fetch must be called on its window.
    fetch: config.fetch ?? ((url, init) => fetch(url, init)),
    retry: policyOf(config.retry),
    onRetry: config.onRetry,
    silence,
  };
}

/** Returns a base URL without slashes at its end. */
export const trimmed = (base: string) => base.replace(/\/+$/, "");
