import type { Message, RunAgentInput } from "@ag-ui/client";
import type { Accepted, Decision, ToolResult } from "./commands.js";

type Interrupt = { id: string; metadata?: Record<string, unknown> | null };
type ResumeEntry = NonNullable<RunAgentInput["resume"]>[number];

/** What the server has acknowledged on one thread: the next request to that thread is answered when the thread shows it. */
export class Acknowledged {
  /** The latest cursor of an acknowledgement. */
  cursor: string | undefined;
  private readonly decisions = new Map<string, Decision>();
  private readonly results = new Map<string, ToolResult>();

  clone(): Acknowledged {
    const clone = new Acknowledged();
    clone.cursor = this.cursor;
    for (const [id, decision] of this.decisions) clone.decisions.set(id, decision);
    for (const [id, result] of this.results) clone.results.set(id, result);
    return clone;
  }

  decided(interruptId: string, decision: Decision, accepted: Accepted): void {
    this.decisions.set(interruptId, decision);
    this.reach(accepted);
  }

  answered(result: ToolResult, accepted: Accepted): void {
    this.results.set(result.toolCallId, result);
    this.reach(accepted);
  }

  isDecided(interruptId: string): boolean {
    return this.decisions.has(interruptId);
  }

  /** The input with what was acknowledged and the agent has not been shown yet: an input has to answer what is open. */
  complete(input: RunAgentInput, pending: readonly Interrupt[]): RunAgentInput {
    const given = input.resume ?? [];
    const missing = pending.filter(({ id }) => this.decisions.has(id) && !given.some(({ interruptId }) => interruptId === id));
    const resume = [...given, ...missing.map((interrupt) => entryOf(interrupt, this.decisions.get(interrupt.id)!))];
    return { ...input, messages: this.withResults(input.messages), ...(missing.length > 0 && { resume }) };
  }

  // Each result follows the message that makes its call, after the results that are there.
  private withResults(messages: Message[]): Message[] {
    const known = new Set(messages.flatMap((m) => (m.role === "tool" ? [m.toolCallId] : [])));
    const complete: Message[] = [];
    let missing: Message[] = [];
    for (const message of messages) {
      if (message.role !== "tool") complete.push(...missing.splice(0));
      complete.push(message);
      if (message.role !== "assistant") continue;
      const calls = (message.toolCalls ?? []).filter(({ id }) => !known.has(id));
      missing = calls.flatMap(({ id }) => (this.results.has(id) ? [messageOf(this.results.get(id)!)] : []));
    }
    return [...complete, ...missing];
  }

  private reach({ cursor }: Accepted): void {
    this.cursor = later(this.cursor, cursor);
  }
}

/** The later of two cursors: their text order is the order of the log. */
export function later(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

const messageOf = ({ toolCallId, content, error }: ToolResult) =>
  ({ id: `result-${toolCallId}`, role: "tool", toolCallId, content, ...(error !== undefined && { error }) }) as Message;

// A decision in the words of an input. A question that was rejected has none: nobody answers it.
function entryOf({ id: interruptId, metadata }: Interrupt, { decision, args, content, reason, remember }: Decision): ResumeEntry {
  const isQuestion = metadata?.["perdure.question"] !== undefined;
  if (isQuestion && decision !== "answer") return { interruptId, status: "cancelled" };
  if (isQuestion) return { interruptId, status: "resolved", payload: content };
  const payload: Record<string, unknown> = { approved: decision === "approve" || decision === "edit" };
  if (decision === "edit") payload.editedArgs = args;
  if (decision === "answer") payload.content = content;
  if (reason !== undefined) payload.reason = reason;
  if (remember !== undefined) payload.remember = remember;
  return { interruptId, status: "resolved", payload };
}
