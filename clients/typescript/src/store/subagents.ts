import type { ThreadStatus } from "./thread_store.js";

/** A subagent, or a branch of a pipeline, with what is known of its work. */
export interface Subagent {
  /** The `subagentRunId` of its messages. */
  id: string;
  /** The name of the agent or the branch. "" for a branch of which the store has read only messages: the trace of its run has its name. */
  name: string;
  /** `suspended`: it waits for decisions, and continues under its ID in a later run. */
  status: "running" | "suspended" | "finished" | "failed";
  /** The tool call that it works for. Absent for a branch. */
  toolCallId?: string;
  /** The subagent that started it. Absent if the run's own agent did. */
  parentId?: string;
  /** Why it failed, if the stream has shown it. */
  error?: { code?: string; message: string };
}

type Event = { type: string } & Record<string, unknown>;

interface Message {
  role: string;
  subagentRunId?: string;
  toolCalls?: { id: string; function: { name: string } }[];
  toolCallId?: string;
}

/** The subagents of a thread: those of which the stream has events, and earlier ones by their messages. */
export class Subagents {
  private readonly streamed = new Map<string, Subagent & { run: string | undefined }>();
  private run: string | undefined;

  /** Applies an event of the thread. */
  observe(event: Event): void {
    const id = String(event.subagentRunId);
    const known = this.streamed.get(id);
    if (event.type === "RUN_STARTED") this.run = String(event.runId);
    if (event.type === "SUBAGENT_STARTED") {
      const { name, parentToolCallId, parentSubagentRunId } = event as Record<string, string | undefined>;
      const [toolCall, parent] = [parentToolCallId && { toolCallId: parentToolCallId }, parentSubagentRunId && { parentId: parentSubagentRunId }];
      this.streamed.set(id, { id, name: String(name), status: "running", ...toolCall, ...parent, run: this.run });
    }
    if (event.type === "SUBAGENT_FINISHED" && known) {
      const { type } = (event.outcome ?? {}) as { type?: string };
      this.streamed.set(id, { ...known, status: type === "suspended" ? "suspended" : "finished" });
    }
    if (event.type === "SUBAGENT_ERROR" && known) {
      const { code, message } = event as { code?: string; message?: string };
      this.streamed.set(id, { ...known, status: "failed", error: { ...(code && { code }), message: String(message) } });
    }
  }

  /** Returns the subagents of these messages and of the last run, in the order of their calls, and then those without a call in the messages. */
  list(messages: readonly Message[], status: ThreadStatus): Subagent[] {
    const known = new Set(messages.map(({ subagentRunId }) => subagentRunId));
    const answered = new Set(messages.map(({ toolCallId }) => toolCallId));
    const found = new Map<string, Subagent>();
    for (const { id: toolCallId, function: { name } } of messages.flatMap(({ toolCalls = [] }) => toolCalls)) {
      const id = toolCallId.replace(/^call_/, "sub_"); // how Perdure names the subagent of a call
      const unanswered = status === "running" ? "running" : status === "waiting" ? "suspended" : "failed";
      if (known.has(id)) found.set(id, { id, name, status: answered.has(toolCallId) ? "finished" : unanswered, toolCallId });
    }
    for (const [id, { run, ...subagent }] of this.streamed) if (known.has(id) || run === this.run) found.set(id, subagent);
    // A snapshot has the messages of branches, and not their names.
    for (const id of known) if (id !== undefined && !found.has(id)) found.set(id, { id, name: "", status: "finished" });
    return [...found.values()];
  }
}
