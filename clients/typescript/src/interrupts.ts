import type { Interrupt } from "@ag-ui/client";

type Event = { type: string } & Record<string, unknown>;

/** A client tool call that waits for its result. */
export interface PendingToolCall {
  /** The ID of the call, for `sendToolResult`. */
  toolCallId: string;
  /** The name of the tool. */
  toolName: string;
  /** The arguments as JSON text: use `JSON.parse`. */
  args: string;
}

interface Message {
  role: string;
  toolCalls?: { id: string; function: { name: string; arguments: string } }[];
  toolCallId?: string;
}

/** What an interrupt waits for, if no person needs to decide it. */
export interface AwaitedEnd {
  /** Whether it ends with a time or an event. The time, or the end of the time for the event, is `expiresAt` of the interrupt. */
  kind: "timer" | "event";
  /** The type of the event. */
  event?: string;
  /** Values that the data of the event must have, by their path. */
  match?: Record<string, unknown>;
}

/** Returns what an interrupt waits for, or undefined if a person decides it. */
export function awaitedBy(interrupt: { metadata?: unknown }): AwaitedEnd | undefined {
  const { "perdure.wait": wait } = (interrupt.metadata ?? {}) as { "perdure.wait"?: AwaitedEnd };
  return wait;
}

/** The open interrupts and client tool calls of a thread, by the events of its stream. */
export class OpenInterrupts {
  /** The open interrupts by ID. */
  readonly interrupts = new Map<string, Interrupt>();
  private readonly heldCalls = new Set<string>();
  private run: string | undefined; // the last run that has begun
  private isRunning = false;
  /** Whether a call is open after the end of the last run. */
  private isPending: (toolCallId: string) => boolean = () => true;

  /** Applies an event of the thread. Returns the interrupts that it resolves. */
  observe(event: Event): Interrupt[] {
    switch (event.type) {
      case "RUN_STARTED":
        return this.begin(String(event.runId));
      case "CUSTOM":
        if (event.name === "perdure.approval") this.add(event.value as Interrupt);
        if (event.name === "perdure.toolCalls") for (const id of event.value as string[]) this.heldCalls.add(id);
        return [];
      case "TOOL_CALL_RESULT":
        this.heldCalls.delete(String(event.toolCallId));
        return this.resolve(({ toolCallId }) => toolCallId !== undefined && toolCallId === event.toolCallId);
      case "RUN_FINISHED":
      case "RUN_ERROR":
        return this.end(event);
      default:
        return [];
    }
  }

  /** Returns the client tool calls in these messages that wait for their results. */
  toolCalls(messages: readonly Message[]): PendingToolCall[] {
    const answered = new Set(messages.flatMap((m) => (m.role === "tool" ? [m.toolCallId] : [])));
    const withInterrupt = new Set([...this.interrupts.values()].map(({ toolCallId }) => toolCallId));
    const last = messages.findLast(({ role }) => role === "assistant" || role === "user");
    const calls = this.isRunning
      ? messages.flatMap((m) => m.toolCalls ?? []).filter(({ id }) => this.heldCalls.has(id))
      : (last?.toolCalls ?? []).filter(({ id }) => this.isPending(id));
    const open = calls.filter(({ id }) => !answered.has(id) && !withInterrupt.has(id));
    return open.map(({ id, function: { name, arguments: args } }) => ({ toolCallId: id, toolName: name, args }));
  }

  // A reader that joins a run again receives its RUN_STARTED again.
  private begin(run: string): Interrupt[] {
    const isNew = run !== this.run;
    this.run = run;
    this.isRunning = true;
    return isNew ? this.resolve(() => true) : [];
  }

  private end(event: Event): Interrupt[] {
    this.isRunning = false;
    this.heldCalls.clear();
    const outcome = event.outcome as { type?: string; interrupts?: Interrupt[]; pendingToolCallIds?: string[] } | undefined;
    this.isPending = pendingAfter(event, outcome);
    const open = outcome?.type === "interrupt" ? (outcome.interrupts ?? []) : [];
    const ids = new Set(open.map(({ id }) => id));
    const resolved = this.resolve(({ id }) => !ids.has(id));
    for (const interrupt of open) this.add(interrupt);
    return resolved;
  }

  private add(interrupt: Interrupt): void {
    this.interrupts.set(interrupt.id, interrupt);
  }

  private resolve(isResolved: (interrupt: Interrupt) => boolean): Interrupt[] {
    const resolved = [...this.interrupts.values()].filter(isResolved);
    for (const { id } of resolved) this.interrupts.delete(id);
    return resolved;
  }
}

// A run that was cancelled or failed leaves no call open, although its message may have a call whose arguments are
// incomplete. The events of clients before AG-UI 1.0 do not name the open calls.
function pendingAfter(event: Event, outcome: { type?: string; pendingToolCallIds?: string[] } | undefined): (toolCallId: string) => boolean {
  const metadata = event.metadata as { "perdure.error"?: unknown } | undefined;
  if (event.type === "RUN_ERROR" || outcome?.type === "cancelled" || metadata?.["perdure.error"]) return () => false;
  const { pendingToolCallIds } = outcome ?? {};
  return pendingToolCallIds ? (id) => pendingToolCallIds.includes(id) : () => true;
}
