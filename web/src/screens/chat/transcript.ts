import type { Message } from "@ag-ui/client";
import type { Subagent } from "@perdure/client/react";

type Of<Role> = Extract<Message, { role: Role }>;

/** A message of a user. */
export type UserMessage = Of<"user">;
/** The result of a tool call. */
export type ToolMessage = Of<"tool">;
/** A call of a tool in a message of an agent. */
export type ToolCall = NonNullable<Of<"assistant">["toolCalls"]>[number];

/** The work of a subagent or of a branch. */
export interface Work {
  subagent: Subagent;
  entries: Entry[];
}

/** What the transcript shows of a part of a message. */
export type Entry = { key: string } & (
  | { kind: "user"; message: UserMessage }
  | { kind: "text"; message: Of<"assistant"> }
  | { kind: "instructions"; message: Of<"system"> | Of<"developer"> }
  | { kind: "reasoning"; message: Of<"reasoning"> }
  | { kind: "activity"; message: Of<"activity"> }
  | { kind: "call"; call: ToolCall; result: ToolMessage | undefined; work: Work | undefined }
  | { kind: "handoff"; agent: string }
  | { kind: "branch"; work: Work }
);

/** Returns what the transcript shows of a thread. Each subagent is inside of its tool call, or where its first message is. */
export function entriesOf(messages: readonly Message[], subagents: readonly Subagent[]): Entry[] {
  return new Transcript(messages, subagents).entriesOf(undefined);
}

class Transcript {
  private readonly results = new Map<string, ToolMessage>();
  private readonly owned = new Map<string | undefined, { message: Message; at: number }[]>();
  private readonly byCall = new Map<string, Subagent>();
  private readonly branches = new Map<string | undefined, Subagent[]>();

  constructor(messages: readonly Message[], subagents: readonly Subagent[]) {
    messages.forEach((message, at) => {
      if (message.role === "tool") this.results.set(message.toolCallId, message);
      const owner = (message as { subagentRunId?: string }).subagentRunId;
      this.owned.set(owner, [...(this.owned.get(owner) ?? []), { message, at }]);
    });
    for (const subagent of subagents) {
      if (subagent.toolCallId !== undefined) this.byCall.set(subagent.toolCallId, subagent);
      else this.branches.set(subagent.parentId, [...(this.branches.get(subagent.parentId) ?? []), subagent]);
    }
  }

  entriesOf(owner: string | undefined): Entry[] {
    const entries: Entry[] = [];
    const branches = (this.branches.get(owner) ?? []).map((subagent) => ({ subagent, at: this.owned.get(subagent.id)?.[0]?.at ?? Infinity }));
    branches.sort((a, b) => a.at - b.at);
    for (const { message, at } of this.owned.get(owner) ?? []) {
      while (branches[0] && branches[0].at < at) entries.push(this.branch(branches.shift()!.subagent));
      entries.push(...this.partsOf(message));
    }
    for (const { subagent } of branches) entries.push(this.branch(subagent));
    return entries;
  }

  private partsOf(message: Message): Entry[] {
    const { id } = message;
    switch (message.role) {
      case "user":
        return [{ kind: "user", key: id, message }];
      case "system":
      case "developer":
        return [{ kind: "instructions", key: id, message }];
      case "reasoning":
        return message.content ? [{ kind: "reasoning", key: id, message }] : [];
      case "activity":
        return [{ kind: "activity", key: id, message }];
      case "assistant": {
        const calls = (message.toolCalls ?? []).map((call) => this.call(call));
        return message.content ? [{ kind: "text", key: id, message }, ...calls] : calls;
      }
      default:
        return []; // a tool message is in the entry of its call
    }
  }

  private call(call: ToolCall): Entry {
    const result = this.results.get(call.id);
    const agent = handedTo(call, result);
    if (agent !== undefined) return { kind: "handoff", key: call.id, agent };
    return { kind: "call", key: call.id, call, result, work: this.workOf(this.byCall.get(call.id)) };
  }

  private branch(subagent: Subagent): Entry {
    return { kind: "branch", key: subagent.id, work: this.workOf(subagent)! };
  }

  private workOf(subagent: Subagent | undefined): Work | undefined {
    return subagent && { subagent, entries: this.entriesOf(subagent.id) };
  }
}

const handoff = "transfer_to_"; // and the agent: how Perdure names the tool of a handoff

// Returns the agent to which a call has handed the thread over, or undefined.
function handedTo({ function: { name } }: ToolCall, result: ToolMessage | undefined): string | undefined {
  const isDone = result !== undefined && !result.error && String(result.content).startsWith("The conversation is handed over.");
  return name.startsWith(handoff) && isDone ? name.slice(handoff.length) : undefined;
}

/** Whether two entries show the same. */
export function isSameEntry(a: Entry, b: Entry): boolean {
  if (a.key !== b.key || a.kind !== b.kind) return false;
  if (a.kind === "call" && b.kind === "call") return a.call === b.call && a.result === b.result && isSameWork(a.work, b.work);
  if (a.kind === "branch" && b.kind === "branch") return isSameWork(a.work, b.work);
  if (a.kind === "handoff") return true;
  return (a as { message: unknown }).message === (b as { message: unknown }).message;
}

function isSameWork(a: Work | undefined, b: Work | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.subagent === b.subagent && a.entries.length === b.entries.length && a.entries.every((entry, i) => isSameEntry(entry, b.entries[i]!));
}

/** Returns the IDs of the tool calls in entries, at all depths. */
export function callsIn(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind === "call") return [entry.call.id, ...callsIn(entry.work?.entries ?? [])];
    return entry.kind === "branch" ? callsIn(entry.work.entries) : [];
  });
}
