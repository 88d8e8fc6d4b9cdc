/**
 * A problem document of the server (RFC 9457). `code` is stable and names the kind of the problem. `detail` is a text for
 * people. `pointer` (RFC 6901) names the invalid member of the input, `parameter` the invalid query parameter.
 */
export interface Problem {
  type?: string;
  title?: string;
  status: number;
  code: string;
  detail?: string;
  pointer?: string;
  parameter?: string;
  /** The active run of the thread, with code `busy`. */
  activeRun?: string;
  /** The recorded answer or decision, with status 409. */
  recorded?: unknown;
}

/** The server refused the request. Repeating the request has the same result. */
export class ProblemError extends Error {
  override readonly name: string = "ProblemError";
  /** The problem document of the server. */
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.status} ${problem.code}${problem.detail ? ": " + problem.detail : ""}`);
    this.problem = problem;
  }

  /** The HTTP status, such as 403 not allowed, 404 unknown, 409 conflict, 410 expired or deleted, 422 invalid answer. */
  get status(): number {
    return this.problem.status;
  }

  /** The stable code of the problem, or `http_<status>` for a response of a proxy. */
  get code(): string {
    return this.problem.code;
  }
}

/** Another answer or decision was recorded before (409). The request changed nothing. */
export class AnsweredError<Recorded = unknown> extends ProblemError {
  override readonly name = "AnsweredError";
  /** The recorded answer or decision. */
  readonly recorded: Recorded;

  constructor(problem: Problem) {
    super(problem);
    this.recorded = problem.recorded as Recorded;
  }
}

/**
 * All attempts failed without an answer. Whether the request took effect is unknown. Sending the same request again is
 * safe.
 */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

const longestText = 500;

/** Decodes an error response. A response without a problem document, such as one of a proxy, gets the code `http_<status>`. */
export function problemOf(status: number, body: string): Problem {
  const problem: Problem = { status, code: `http_${status}` };
  try {
    const members: unknown = JSON.parse(body);
    if (typeof members === "object" && members !== null && "code" in members && typeof members.code === "string") {
      return { ...members, status, code: members.code };
    }
  } catch {
    // Not JSON: the text becomes the detail.
  }
  if (body !== "") problem.detail = body.slice(0, longestText);
  return problem;
}

/** Returns the error for a problem. */
export function errorOf(problem: Problem): ProblemError {
  return problem.status === 409 && "recorded" in problem ? new AnsweredError(problem) : new ProblemError(problem);
}
