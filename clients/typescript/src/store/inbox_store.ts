import type { BatchDecision, PerdureClient } from "../client.js";
import type { Accepted, Decision } from "../commands.js";
import { ProblemError } from "../problem.js";
import type { Approval, BatchResult } from "../schemas.js";
import { ExternalStore } from "./external_store.js";
import { shareByID } from "./structural_sharing.js";

/** Which approvals an InboxStore has. */
export interface InboxFilter {
  /** Only approvals of runs of this agent. */
  agent?: string;
  /** Only approvals of calls of this tool. */
  tool?: string;
  /** Only approvals of this thread. */
  thread?: string;
  /** Only approvals that this person may decide: `me`, a subject, or `role:name`. */
  assignee?: string;
}

/** The inbox at one moment. */
export interface InboxSnapshot {
  /** The open approvals and questions, oldest first. */
  approvals: readonly Approval[];
  /** `loading` until the list is complete, `ready` while the store receives changes, `failed` after it has given up. */
  status: "loading" | "ready" | "failed";
  /** Why the store has given up, with `failed`. */
  error?: { code: string; message: string };
}

/** The open approvals of all threads, at most 10,000, for a user interface. It follows their changes while it has listeners. */
export class InboxStore extends ExternalStore<InboxSnapshot> {
  private open = new Map<string, Approval>();
  private status: InboxSnapshot["status"] = "loading";
  private error: InboxSnapshot["error"];

  constructor(
    private readonly client: PerdureClient,
    private readonly filter: InboxFilter = {},
  ) {
    super({ approvals: [], status: "loading" });
  }

  /** Decides an approval or answers a question. */
  async decide(approval: Pick<Approval, "threadId" | "id">, decision: Decision): Promise<Accepted> {
    const accepted = await this.client.decide(approval.threadId, approval.id, decision);
    if (!accepted.missing) this.open.delete(approval.id);
    this.invalidate();
    return accepted;
  }

  /** Makes up to 100 decisions. Returns the result of each, in the same order. */
  async decideBatch(decisions: BatchDecision[]): Promise<BatchResult[]> {
    const results = await this.client.decideBatch(decisions);
    for (const { id, status, missing } of results) if (status === 200 && !missing) this.open.delete(id);
    this.invalidate();
    return results;
  }

  /** Reads the inbox again, after the store has given up. */
  reload(): void {
    this.restart();
  }

  protected async read(signal: AbortSignal): Promise<void> {
    this.error = undefined;
    while (!signal.aborted) {
      try {
        this.status = "loading";
        await this.follow(await this.load(signal), signal);
      } catch (error) {
        if (signal.aborted) return;
        // The cursor has expired: list again.
        if (error instanceof ProblemError && error.status === 410) continue;
        this.status = "failed";
        this.error = { code: error instanceof ProblemError ? error.code : "connection_lost", message: (error as Error).message };
        return this.invalidate();
      }
    }
  }

  protected compute(previous: InboxSnapshot): InboxSnapshot {
    const open = [...this.open.values()].sort((a, b) => Date.parse(a.requestedAt) - Date.parse(b.requestedAt));
    const approvals = shareByID(previous.approvals, open);
    const { status, error } = this;
    if (approvals === previous.approvals && status === previous.status && error === previous.error) return previous;
    return { approvals, status, ...(error && { error }) };
  }

  // Returns the cursor from which the changes continue the list. Until the list is complete, the store has the last one.
  private async load(signal: AbortSignal): Promise<string | undefined> {
    let cursor: string | undefined;
    const open = new Map<string, Approval>();
    for await (const { items, eventsCursor } of this.client.approvals({ ...this.filter, limit: 500 }, { signal }).pages()) {
      cursor ??= eventsCursor;
      for (const approval of items) open.set(approval.id, approval);
      if (open.size >= largestInbox) break;
    }
    this.open = open;
    this.status = "ready";
    this.invalidate();
    return cursor;
  }

  private async follow(after: string | undefined, signal: AbortSignal): Promise<void> {
    for await (const { type, approval } of this.client.approvalEvents({ ...this.filter, after }, { signal })) {
      if (type === "decided" || type === "expired") this.open.delete(approval.id);
      else if (this.open.has(approval.id) || this.open.size < largestInbox) this.open.set(approval.id, approval);
      this.invalidate();
    }
  }
}

const largestInbox = 10_000;
