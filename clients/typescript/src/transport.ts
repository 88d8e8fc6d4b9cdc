import type { HttpAgentFetchFn } from "@ag-ui/client";
import type { Policy, Retry } from "./backoff.js";

/** The options that all requests of an agent share. */
export interface Transport {
  fetch: HttpAgentFetchFn;
  retry: Policy;
  onRetry: ((retry: Retry) => void) | undefined;
  /** The longest silence of a connection, in milliseconds. */
  silence: number;
}
