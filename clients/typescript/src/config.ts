import type { HttpAgentConfig } from "@ag-ui/client";
import { policyOf, type Retry, type RetryOptions } from "./backoff.js";
import { baseOf, runsURL } from "./routes.js";
import type { Transport } from "./transport.js";

/** How to reach a server, and how to come back to it. */
export interface PerdureConfig {
  /** In place of the global fetch. */
  fetch?: HttpAgentConfig["fetch"];
  /** How to come back when a connection is lost or the server cannot answer now. */
  retry?: RetryOptions;
  /**
   * A connection on which nothing came for so many milliseconds is taken for lost. The server sends a
   * comment at least every 15 s when it has nothing else to say. Default 45,000; `Infinity` for ever.
   */
  silence?: number;
  /** Told before each pause, so that a user interface can say "reconnecting". */
  onRetry?: (retry: Retry) => void;
}

/** What HttpAgent takes, where the agent is, and how to come back to it. */
export interface PerdureAgentConfig extends Omit<HttpAgentConfig, "url" | "fetch">, PerdureConfig {
  /** The agent's run endpoint, `{baseUrl}/v1/agents/{agent}/runs`. Or give `baseUrl` and `agent`. */
  url?: string;
  /**
   * What all of the server's routes begin with: all before `/v1`. Told by `url`, unless that is
   * another path that a proxy leads to the run endpoint.
   */
  baseUrl?: string;
  /** The agent's name. */
  agent?: string;
  /** Whether `connectAgent` goes on when no run is active, until it is aborted. Default false. */
  follow?: boolean;
}

const defaultSilence = 45_000;

/** The run endpoint; throws a TypeError that names what is missing. */
export function urlOf({ url, baseUrl, agent }: PerdureAgentConfig): string {
  if (url !== undefined) return url;
  if (baseUrl === undefined || agent === undefined) throw new TypeError("give url, or baseUrl and agent");
  return runsURL(trimmed(baseUrl), agent);
}

/** What the routes begin with; throws a TypeError if nothing tells. */
export function baseUrlOf(config: PerdureAgentConfig): string {
  const base = config.baseUrl === undefined ? baseOf(urlOf(config)) : trimmed(config.baseUrl);
  if (base === undefined) throw new TypeError(`${config.url} does not end with /v1/agents/{agent}/runs: give baseUrl, too`);
  return base;
}

/** How requests are made; throws a RangeError that names the option at fault. */
export function transportOf(config: PerdureConfig): Transport {
  const { silence = defaultSilence } = config;
  if (!(silence > 0)) throw new RangeError(`silence must be a number above 0, not ${silence}`);
  return {
    // A browser's own fetch wants to be called on its window.
    fetch: config.fetch ?? ((url, init) => fetch(url, init)),
    retry: policyOf(config.retry),
    onRetry: config.onRetry,
    silence,
  };
}

/** A base without slashes at its end. */
export const trimmed = (base: string) => base.replace(/\/+$/, "");
