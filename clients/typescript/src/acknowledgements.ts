import type { Message, RunAgentInput } from "@ag-ui/client";
import type { Accepted, Decision, DecisionBody, ToolResult } from "./commands.js";

type Interrupt = { id: string; metadata?: Record<string, unknown> | null };
type ResumeEntry = NonNullable<RunAgentInput["resume"]>[number];

/** The decisions and results of one thread that the server has acknowledged. The next request to the thread waits for their effect. */
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

  /** Returns the input with the acknowledged decisions and results that the agent has not received yet. An input must resolve all open interrupts. */
  complete(input: RunAgentInput, pending: readonly Interrupt[]): RunAgentInput {
    const given = input.resume ?? [];
    const missing = pending.filter(({ id }) => this.decisions.has(id) && !given.some(({ interruptId }) => interruptId === id));
    const resume = [...given, ...missing.map((interrupt) => entryOf(interrupt, this.decisions.get(interrupt.id)!))];
    return { ...input, messages: this.withResults(input.messages), ...(missing.length > 0 && { resume }) };
  }

  // Adds each missing result after the message with its call, and after the existing results of that message.
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

/** Returns the later of two cursors. Their order as text is their order in the log. */
export function later(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

const messageOf = ({ toolCallId, content, error }: ToolResult) =>
  ({ id: `result-${toolCallId}`, role: "tool", toolCallId, content, ...(error !== undefined && { error }) }) as Message;

// Returns a decision as an entry of resume. A rejected question becomes a cancelled entry.
function entryOf({ id: interruptId, metadata }: Interrupt, { decision, args, content, reason, remember }: DecisionBody): ResumeEntry {
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
