/** A run that failed or was cancelled. */
export class RunError extends Error {
  override readonly name = "RunError";
  /** The thread of the run. */
  readonly threadId: string;
  /** The run. */
  readonly runId: string;
  /** The stable code of the failure, such as `invalid_output`; `cancelled` if the run was cancelled. */
  readonly code: string;

  constructor(threadId: string, runId: string, code: string, message: string) {
    super(`run ${runId} failed: ${code}: ${message}`);
    [this.threadId, this.runId, this.code] = [threadId, runId, code];
  }
}

/** An open interrupt of a run that waits. */
export interface WaitingInterrupt {
  id: string;
  [member: string]: unknown;
}

/** A run that ended before it had a result, because it waits for a person, a time, an event or a tool of the client. */
export class WaitingError extends Error {
  override readonly name = "WaitingError";
  /** The thread of the run. */
  readonly threadId: string;
  /** The run. */
  readonly runId: string;
  /** The open approvals, questions, limits and waits. */
  readonly interrupts: WaitingInterrupt[];
  /** The calls of client tools without a result. */
  readonly toolCallIds: string[];

  constructor(threadId: string, runId: string, interrupts: WaitingInterrupt[], toolCallIds: string[]) {
    super(`run ${runId} waits: it has ${interrupts.length} open interrupts and ${toolCallIds.length} tool calls of the client`);
    [this.threadId, this.runId, this.interrupts, this.toolCallIds] = [threadId, runId, interrupts, toolCallIds];
  }
}

/** The last event of a run. */
interface LastEvent {
  type: string;
  code?: string;
  message?: string;
  outcome?: { type: string; interrupts?: WaitingInterrupt[]; pendingToolCallIds?: string[] };
  result?: unknown;
  metadata?: Record<string, unknown>;
}

/** Returns the result in a RUN_FINISHED, any JSON; undefined if it has none. */
export function resultIn({ result, metadata }: { result?: unknown; metadata?: unknown }): unknown {
  const isNull = (metadata as Record<string, unknown> | undefined)?.["perdure.nullResult"] === true; // AG-UI omits a member that is null
  return isNull ? null : result;
}

/** Returns the result in the last event of a run. A run without one throws a RunError or a WaitingError. */
export function resultOf(threadId: string, runId: string, last: LastEvent | undefined): unknown {
  if (last?.type === "RUN_ERROR") throw new RunError(threadId, runId, last.code ?? "", last.message ?? "");
  const { type = "success", interrupts = [], pendingToolCallIds = [] } = last?.outcome ?? {};
  if (type === "cancelled") throw new RunError(threadId, runId, "cancelled", "the run was cancelled");
  if (interrupts.length + pendingToolCallIds.length > 0) throw new WaitingError(threadId, runId, interrupts, pendingToolCallIds);
  const result = last && resultIn(last);
  if (result === undefined) throw new RunError(threadId, runId, "no_result", "the agent has no output");
  return result;
}
