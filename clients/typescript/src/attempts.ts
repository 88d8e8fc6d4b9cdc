import { type Backoff, retryAfterOf } from "./backoff.js";
import { type Connection, MovedError } from "./connection.js";
import { ConnectionLostError, problemOf, ProblemError } from "./problem.js";

/**
 * Opens a connection, and repeats that until the server gives a definite answer. After a 503 or a similar status the
 * effect of the request is unknown, and every request of this client is safe to repeat. Rejects with a
 * ConnectionLostError when the backoff ends, and with the reason of an aborted signal.
 *
 * lost is the error of the previous connection: the first attempt is then made after a pause, otherwise at once.
 */
export async function connectWithRetry(
  open: () => Promise<Connection>,
  backoff: Backoff,
  signal: AbortSignal,
  lost?: Error,
): Promise<Connection> {
  for (let pause = 0; ; ) {
    if (lost && !(lost instanceof MovedError) && !(await backoff.wait(lost, pause, signal))) {
      throw new ConnectionLostError(`the connection was lost: ${lost.message}`, { cause: lost });
    }
    try {
      const connection = await open();
      const { status, headers } = connection.response;
      if (!isTransient(status)) return connection;
      pause = retryAfterOf(headers);
      lost = new ProblemError(problemOf(status, await bodyOf(connection)));
    } catch (error) {
      signal.throwIfAborted();
      pause = 0;
      lost = errorFrom(error);
    }
  }
}

/** Reports whether another attempt may have another status. */
export const isTransient = (status: number) => status === 408 || status === 429 || status >= 500;

/** Reads the text of an error response and closes the connection. Resolves with "" if the body cannot be read. */
export async function bodyOf(connection: Connection): Promise<string> {
  try {
    return await connection.text();
  } catch {
    return "";
  } finally {
    connection.close();
  }
}

/** Returns a thrown value, or the reason of an abort, as an Error. */
export const errorFrom = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));
