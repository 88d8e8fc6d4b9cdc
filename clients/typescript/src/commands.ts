import type { UserMessage } from "@ag-ui/client";
import { Backoff } from "./backoff.js";
import { Connection } from "./connection.js";
import { errorFrom, insist } from "./insist.js";
import { errorOf, type Problem, problemOf } from "./problem.js";
import type { Transport } from "./transport.js";

/** A part of a message's content, as the installed generation of AG-UI has it. */
export type ContentPart = Exclude<UserMessage["content"], string>[number];

/** The result of a tool call that a run waits for. */
export interface ToolResult {
  toolCallId: string;
  content: string | ContentPart[];
  /** What went wrong, if the tool failed. */
  error?: string;
}

/** How to ask. */
export interface CommandOptions {
  /** Ends the attempts. Whether a command took effect is unknown then. */
  signal?: AbortSignal;
}

/** What is decided about an approval. */
export interface Decision {
  decision: "approve" | "reject" | "edit" | "answer";
  /** With `edit`: the arguments that the tool is called with instead, all of them. */
  args?: Record<string, unknown>;
  /** With `answer`: what stands in for the tool's result; for a question, any JSON that fits its schema. */
  content?: unknown;
  /** Why. */
  reason?: string;
  /**
   * With `approve`: which further calls of the tool on this thread the approval covers. `"arguments"`, like `true`: calls with
   * equal arguments. `"tool"`: all calls of the tool.
   */
  remember?: boolean | "arguments" | "tool";
}

/** Votes for the same arguments of a call. */
export interface Proposal {
  argsDigest: string;
  /** `approve` for the model's arguments, `edit` for others. */
  decision: "approve" | "edit";
  votes: number;
  /** How many more votes complete the quorum. */
  missing: number;
}

/** The decision that stands. */
export interface RecordedDecision {
  id: string;
  decision: string;
  /** The subject who decided. */
  by?: string;
  /** In RFC 3339. */
  at?: string;
  /** The arguments of an edit. */
  args?: Record<string, unknown>;
  /** The arguments are left out: a batch does so beyond 8 KiB. */
  truncated?: boolean;
  reason?: string;
}

/** The server has durably accepted what it was sent. */
export interface Accepted {
  /** It had been accepted before, and this changed nothing. */
  repeated: boolean;
  /** With `repeated`, for a decision: the one that stands. It may be another caller's. */
  recorded?: RecordedDecision;
  /** For a vote that does not decide: how many more people have to vote for the same arguments. */
  missing?: number;
  /** For a vote that does not decide: the votes for each proposal. */
  proposals?: Proposal[];
  /** Pass it on as `waitFor` to be shown what came of it. An agent does so by itself with what it was sent through. */
  cursor?: string;
  [member: string]: unknown;
}

export interface Command {
  url: string;
  headers: Record<string, string>;
  /** Without one it is a question, which changes nothing. */
  body?: object;
  signal?: AbortSignal | undefined;
  /** The refusal is one of now, not for good: try again. */
  isEarly?: ((problem: Problem) => boolean) | undefined;
}

/**
 * Sends a command, or a question, until there is an answer to it, and returns that: all of them are safe to
 * repeat. Rejects with a ProblemError when it is refused, with a ConnectionLostError when patience ends, and
 * with the signal's reason.
 */
export async function ask<Answer>(transport: Transport, command: Command): Promise<Answer> {
  const { signal = new AbortController().signal, url, body } = command;
  const headers: Record<string, string> = { ...command.headers, Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  const call = { url, init: body ? { method: "POST", headers, body: JSON.stringify(body) } : { method: "GET", headers } };
  const backoff = new Backoff(transport.retry, transport.onRetry);
  const open = () => Connection.open(transport.fetch, call, transport.silence, signal);
  for (let lost: Error | undefined; ; ) {
    const connection = await insist(open, backoff, signal, lost);
    const { ok, status } = connection.response;
    let text: string;
    try {
      text = await connection.text();
    } catch (error) {
      signal.throwIfAborted();
      lost = errorFrom(error); // cut within the answer: it is unknown, too
      continue;
    } finally {
      connection.close();
    }
    if (ok) return (text === "" ? {} : JSON.parse(text)) as Answer; // a cancel is answered without a body
    const problem = problemOf(status, text);
    lost = errorOf(problem);
    if (!command.isEarly?.(problem)) throw lost;
  }
}

/** Sends a command that may have been accepted before. */
export async function send(transport: Transport, command: Command): Promise<Accepted> {
  const answer = await ask<Partial<Accepted>>(transport, command);
  return { ...answer, repeated: answer.repeated === true };
}
