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
  /** With `answer`: what stands in for the tool's result. */
  content?: string;
  /** Why. */
  reason?: string;
  /** Whether it holds for equal calls, too. */
  remember?: boolean;
}

/** The server has durably accepted what it was sent. */
export interface Accepted {
  /** It had been accepted before, and this changed nothing. */
  repeated: boolean;
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
