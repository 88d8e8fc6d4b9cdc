import type { HttpAgentFetchFn } from "@ag-ui/client";
import type { Policy, Retry } from "./backoff.js";

/** What all requests of an agent have in common. */
export interface Transport {
  fetch: HttpAgentFetchFn;
  retry: Policy;
  onRetry: ((retry: Retry) => void) | undefined;
  /** How long a connection may be silent, in milliseconds. */
  silence: number;
}
