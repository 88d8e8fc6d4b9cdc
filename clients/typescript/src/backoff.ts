/** When the client repeats a request after the connection was lost. Times are in milliseconds. */
export interface RetryOptions {
  /** The most attempts in a row that receive no event and last less than 5 s. Default: no limit other than `giveUpAfter`. */
  attempts?: number;
  /** The pause before the first attempt; each failure doubles it. Default 250. */
  baseDelay?: number;
  /** The longest pause, if the server does not ask for a longer one by `Retry-After`. Default 10,000. */
  maxDelay?: number;
  /** The part of a pause that is random, 0 to 1, so that clients do not reconnect at the same time. Default 0.5. */
  jitter?: number;
  /**
   * The time after the loss of the connection at which the client gives up. Default 300,000. With `Infinity` the client
   * never gives up.
   */
  giveUpAfter?: number;
}

/** Retry describes the next attempt of a request. */
export interface Retry {
  /** 1 for the first attempt after the connection was lost. */
  attempt: number;
  /** The pause before it, in milliseconds. */
  delay: number;
  /** The error of the previous attempt. */
  error: Error;
}

export type Policy = Required<RetryOptions>;

const defaults: Policy = { attempts: Infinity, baseDelay: 250, maxDelay: 10_000, jitter: 0.5, giveUpAfter: 300_000 };

/** Checks the options and adds the defaults. Throws a RangeError that names an invalid option. */
export function policyOf(options: RetryOptions = {}): Policy {
  const policy = { ...defaults, ...options };
  for (const name of Object.keys(defaults) as (keyof Policy)[]) {
    if (!(policy[name] >= 0)) throw new RangeError(`retry.${name} must be a number of at least 0, not ${policy[name]}`);
  }
  if (policy.jitter > 1) throw new RangeError(`retry.jitter must be at most 1, not ${policy.jitter}`);
  return policy;
}

/** The time after which a connection counts as a success even if it has received no data, in milliseconds. */
const lastingTime = 5_000;

/** Functions that learn of the connection of a request. */
export interface ConnectionListeners {
  /** Called before each pause. */
  onRetry?: ((retry: Retry) => void) | undefined;
  /** Called each time when the server has accepted the request. */
  onConnected?: (() => void) | undefined;
  /** Called when the server has accepted the request after a pause. */
  onReconnected?: (() => void) | undefined;
}

/** The pauses between the attempts of one request. */
export class Backoff {
  private failures = 0;
  private lostAt = 0;
  private connectedAt = Infinity; // Infinity = there is no connection
  private hasPaused = false;

  constructor(
    private readonly policy: Policy,
    private readonly listeners: ConnectionListeners = {},
  ) {}

  /**
   * Records that the server has accepted the request. The failures are not reset before data was received or the
   * connection has lasted: a server that closes every connection at once is asked less and less often.
   */
  connected(): void {
    this.connectedAt = Date.now();
    this.tell(() => this.listeners.onConnected?.());
    if (this.hasPaused) this.tell(() => this.listeners.onReconnected?.());
    this.hasPaused = false;
  }

  /** Resets the failures after data was received. */
  reset(): void {
    this.failures = 0;
  }

  /**
   * Waits before the next attempt. Resolves with false if the client must give up. Rejects as soon as the signal is
   * aborted. retryAfter is the pause that the server asks for, in milliseconds.
   */
  async wait(error: Error, retryAfter: number, signal: AbortSignal): Promise<boolean> {
    if (Date.now() - this.connectedAt >= lastingTime) this.reset();
    this.connectedAt = Infinity;
    if (this.failures++ === 0) this.lostAt = Date.now();
    const delay = retryAfter + this.delay();
    if (this.failures > this.policy.attempts || Date.now() + delay > this.lostAt + this.policy.giveUpAfter) return false;
    this.hasPaused = true;
    this.tell(() => this.listeners.onRetry?.({ attempt: this.failures, delay, error }));
    await sleep(delay, signal);
    return true;
  }

  private delay(): number {
    const { baseDelay, maxDelay, jitter } = this.policy;
    const longest = Math.min(maxDelay, baseDelay * 2 ** (this.failures - 1));
    return longest * (1 - jitter * Math.random());
  }

  // An exception of the listener must not end the run.
  private tell(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** The time that a Retry-After header asks for, in milliseconds from now; 0 without one. */
export function retryAfterOf(headers: Headers): number {
  const text = headers.get("Retry-After")?.trim() ?? "";
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Math.max(0, wait) || 0;
}

/** The longest delay of setTimeout, in milliseconds: a longer one fires at once. */
export const longestTimer = 2 ** 31 - 1;

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, Math.min(ms, longestTimer));
    signal.addEventListener("abort", end);
  });
}
