/**
 * An error answer of the server (RFC 9457). `code` is stable and names what is wrong; `detail` is for
 * people; `pointer` (RFC 6901) names the member of the input that is at fault.
 */
export interface Problem {
  type?: string;
  title?: string;
  status: number;
  code: string;
  detail?: string;
  pointer?: string;
  /** The run that keeps a thread busy, with code `busy`. */
  activeRun?: string;
  /** What was answered or decided before, with status 409. */
  recorded?: unknown;
}

/** The server refused. Asking the same again will be refused again. */
export class ProblemError extends Error {
  override readonly name: string = "ProblemError";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.status} ${problem.code}${problem.detail ? ": " + problem.detail : ""}`);
    this.problem = problem;
  }

  /** The HTTP status: 403 not yours, 404 unknown, 409 decided otherwise, 410 expired or purged, 422 does not fit. */
  get status(): number {
    return this.problem.status;
  }

  get code(): string {
    return this.problem.code;
  }
}

/** Something else was answered or decided before (409). That stands, and nothing has changed. */
export class AnsweredError<Recorded = unknown> extends ProblemError {
  override readonly name = "AnsweredError";
  /** What was recorded first. */
  readonly recorded: Recorded;

  constructor(problem: Problem) {
    super(problem);
    this.recorded = problem.recorded as Recorded;
  }
}

/**
 * No answer came, however often it was tried. Whether the request took effect is unknown; the same
 * again is safe.
 */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

const longestText = 500;

/** Reads an error answer. One that is no problem document, as of a proxy, gets the code `http_<status>`. */
export function problemOf(status: number, body: string): Problem {
  const problem: Problem = { status, code: `http_${status}` };
  try {
    const members: unknown = JSON.parse(body);
    if (typeof members === "object" && members !== null && "code" in members && typeof members.code === "string") {
      return { ...members, status, code: members.code };
    }
  } catch {
    // Not JSON: its text is all there is to say.
  }
  if (body !== "") problem.detail = body.slice(0, longestText);
  return problem;
}

/** The error to throw for an error answer. */
export function errorOf(problem: Problem): ProblemError {
  return problem.status === 409 && "recorded" in problem ? new AnsweredError(problem) : new ProblemError(problem);
}
