import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as pause } from "node:timers/promises";
import type { PerdureConfig } from "@perdure/client";

/** How the runtime reaches Perdure. Give the same options to the agents and to the runner. */
export interface PerdureOptions extends PerdureConfig {
  /** The base URL of Perdure's routes, without `/v1`. */
  baseUrl: string;
  /** Headers of every request to Perdure. They take precedence over headers of the caller. */
  headers?: Record<string, string>;
  /**
   * The headers of the caller that Stop and the list of agents pass to Perdure. Runs and connects pass the headers that
   * `forwardHeaders` of CopilotRuntime selects. Default: `["Authorization"]`.
   */
  callerHeaders?: string[];
}

// The runtime gives the request of the caller to its factory of agents, but not to the runner's stop. Both are called in
// the same asynchronous context.
const callers = new AsyncLocalStorage<Headers>();

/** Makes the headers of a request those of the caller, in the rest of the asynchronous context of the request. */
export const enterCaller = (request: Request): void => callers.enterWith(request.headers);

/** Returns the headers of a request to Perdure that has the credentials of the caller. */
export function headersOf({ headers = {}, callerHeaders = ["Authorization"] }: PerdureOptions): Record<string, string> {
  const caller = callers.getStore();
  const own = new Headers(headers);
  const forwarded: Record<string, string> = {};
  for (const name of callerHeaders) {
    const value = caller?.get(name);
    if (value != null && !own.has(name)) forwarded[name] = value;
  }
  return { ...forwarded, ...headers };
}

// How long a request is repeated while Perdure does not answer, and the pause between two attempts, in milliseconds.
const patience = { atMost: 30_000, pause: 250 };

/**
 * Sends a GET request, or with a body a POST request, and repeats it while Perdure does not answer, for example because it
 * starts again. Every request of this package is safe to repeat. Returns undefined after a 404, and rejects after every other
 * error status.
 */
export async function request(options: PerdureOptions, path: string, body?: object): Promise<Response | undefined> {
  const url = options.baseUrl.replace(/\/+$/, "") + path;
  const headers = headersOf(options);
  const post = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const init = body === undefined ? { headers } : post;
  for (const end = Date.now() + patience.atMost; ; await pause(patience.pause)) {
    const response = await (options.fetch ?? fetch)(url, init).catch((error: Error) => error);
    const answered = response instanceof Response && ![502, 503, 504].includes(response.status);
    if (!answered && Date.now() < end) continue;
    if (response instanceof Error) throw new Error(`${url}: ${response.message}`, { cause: response });
    if (response.status === 404) return undefined;
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    return response;
  }
}
