/** How the client comes back. Times are in milliseconds. */
export interface RetryOptions {
  /** The most attempts in a row that bring nothing. Default: no limit but the time. */
  attempts?: number;
  /** The pause before the first attempt; each failure doubles it. Default 250. */
  baseDelay?: number;
  /** The longest pause, if the server does not ask for a longer one by `Retry-After`. Default 10,000. */
  maxDelay?: number;
  /** The part of a pause that is random, 0 to 1, so that not all clients come at once. Default 0.5. */
  jitter?: number;
  /**
   * No attempt begins later than this after the connection was lost; then the client gives up.
   * Default 300,000. `Infinity` to never give up.
   */
  giveUpAfter?: number;
}

/** An attempt that is about to be made again. */
export interface Retry {
  /** 1 for the first attempt after the connection was lost. */
  attempt: number;
  /** The pause before it, in milliseconds. */
  delay: number;
  /** What went wrong. */
  error: Error;
}

export type Policy = Required<RetryOptions>;

const defaults: Policy = { attempts: Infinity, baseDelay: 250, maxDelay: 10_000, jitter: 0.5, giveUpAfter: 300_000 };

/** Checks the options; throws a RangeError that names the one at fault. */
export function policyOf(options: RetryOptions = {}): Policy {
  const policy = { ...defaults, ...options };
  for (const name of Object.keys(defaults) as (keyof Policy)[]) {
    if (!(policy[name] >= 0)) throw new RangeError(`retry.${name} must be a number of at least 0, not ${policy[name]}`);
  }
  if (policy.jitter > 1) throw new RangeError(`retry.jitter must be at most 1, not ${policy.jitter}`);
  return policy;
}

/** The pauses of one request that is made again and again, until something comes or patience ends. */
export class Backoff {
  private failures = 0;
  private lostAt = 0;

  constructor(
    private readonly policy: Policy,
    private readonly onRetry: ((retry: Retry) => void) | undefined,
  ) {}

  /** Something came: the next failure is the first one. */
  reset(): void {
    this.failures = 0;
  }

  /**
   * Waits before the next attempt; false means to give up. Rejects as soon as the signal is aborted.
   * retryAfter is how long the server wants to be left alone.
   */
  async wait(error: Error, retryAfter: number, signal: AbortSignal): Promise<boolean> {
    if (this.failures++ === 0) this.lostAt = Date.now();
    const delay = retryAfter + this.delay();
    if (this.failures > this.policy.attempts || Date.now() + delay > this.lostAt + this.policy.giveUpAfter) return false;
    this.tell({ attempt: this.failures, delay, error });
    await sleep(delay, signal);
    return true;
  }

  private delay(): number {
    const { baseDelay, maxDelay, jitter } = this.policy;
    const longest = Math.min(maxDelay, baseDelay * 2 ** (this.failures - 1));
    return longest * (1 - jitter * Math.random());
  }

  // What a listener throws is its own: it must not end the run.
  private tell(retry: Retry): void {
    try {
      this.onRetry?.(retry);
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

/** In milliseconds. A longer one would fire at once. */
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
