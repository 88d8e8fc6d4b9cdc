import { type Backoff, retryAfterOf } from "./backoff.js";
import { ConnectionLostError, problemOf, ProblemError } from "./problem.js";
import type { Connection } from "./connection.js";

/**
 * Opens a connection again and again until there is an answer that says something: 503 and its like
 * mean that it is unknown whether the request took effect, and all of this server's requests are safe
 * to repeat. Rejects with a ConnectionLostError when patience has ended, and with the signal's reason
 * when that is aborted.
 *
 * lost is why the connection before ended, which is waited for; without it the first attempt is made at once.
 */
export async function insist(
  open: () => Promise<Connection>,
  backoff: Backoff,
  signal: AbortSignal,
  lost?: Error,
): Promise<Connection> {
  for (let pause = 0; ; ) {
    if (lost && !(await backoff.wait(lost, pause, signal))) {
      throw new ConnectionLostError(`the connection was lost: ${lost.message}`, { cause: lost });
    }
    try {
      const connection = await open();
      const { status, headers } = connection.response;
      if (!isUnknown(status)) return connection;
      pause = retryAfterOf(headers);
      lost = new ProblemError(problemOf(status, await bodyOf(connection)));
    } catch (error) {
      signal.throwIfAborted();
      pause = 0;
      lost = errorFrom(error);
    }
  }
}

const isUnknown = (status: number) => status === 408 || status === 429 || status >= 500;

/** The text of an error answer, as far as it can be had, and the end of its connection. */
export async function bodyOf(connection: Connection): Promise<string> {
  try {
    return await connection.text();
  } catch {
    return "";
  } finally {
    connection.close();
  }
}

/** Anything may be thrown, or be the reason of an abort. */
export const errorFrom = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));
