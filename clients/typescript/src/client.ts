import { type Accepted, ask, type CommandOptions, type Decision, type Proposal, send, type ToolResult } from "./commands.js";
import { type PerdureConfig, transportOf, trimmed } from "./config.js";
import { approvalURL, runURL, threadURL } from "./routes.js";
import type { Transport } from "./transport.js";

/** A tool call that waits for people. */
export interface Approval {
  id: string;
  threadId: string;
  runId: string;
  agent: string;
  toolCallId: string;
  toolName: string;
  /** Left out where they are long, with `argsTruncated`: the thread has them. */
  args?: Record<string, unknown>;
  argsTruncated?: boolean;
  argsDigest: string;
  /** `tool_call`: whether the call may be made; anything else: what a tool asks, to be answered with `content`. */
  reason: string;
  message: string;
  /** What such an answer has to be: a JSON Schema. */
  responseSchema?: Record<string, unknown>;
  /** Times are in RFC 3339. */
  requestedAt: string;
  expiresAt?: string;
  /** Subjects, or `role:name`; empty: every caller that may use the thread. */
  approvers: string[];
  /** The path of the step that asks, in a pipeline. */
  step?: string;
  /** How many different people have to vote for the same arguments. */
  quorum: number;
  /** The decisions that count so far. */
  decisions: Vote[];
  /** The votes while the approval waits for a quorum: first those for `args`, then those for an edit. */
  proposals?: Proposal[];
  /** In a list of what is decided. */
  status?: "open" | "decided" | "expired";
}

/** One person's decision. */
export interface Vote {
  decision: Decision["decision"];
  by?: string;
  at: string;
  /** How it came, as its client says. */
  channel?: "input" | "http" | "websocket" | "batch" | "link" | "cli";
  reason?: string;
  argsDigest?: string;
  /** The arguments of an edit. What is long is left out, with `truncated`. */
  args?: Record<string, unknown>;
  /** An answer. */
  content?: unknown;
  truncated?: boolean;
  /** The scope of an approval that covers further calls. */
  remember?: "arguments" | "tool";
}

/** What to list. */
export interface ApprovalFilter {
  /** `open`, the default, or `decided`: what was decided in the last 30 days, the last first. */
  status?: "open" | "decided";
  agent?: string;
  tool?: string;
  thread?: string;
  /** Those that have waited at least as long, such as `4h`. Not with `decided`. */
  olderThan?: string;
  /** Those that a caller may decide: `me`, a subject, or `role:name`. Not with `decided`. */
  assignee?: string;
  /** 1 to 500, by default 100. */
  limit?: number;
  /** `nextCursor` of the page before. Without it, or undefined, the first page. */
  cursor?: string | undefined;
  /** The `cursor` of a decision's answer: the page shows that decision. */
  waitFor?: string | undefined;
}

export interface ApprovalPage {
  items: Approval[];
  /** There are more. */
  nextCursor?: string;
  /** Where `GET /v1/approvals/events` goes on from the page; with `decided` there is none. */
  eventsCursor?: string;
}

/**
 * What one does to threads without watching them: for inboxes, consoles and programs. Threads are named
 * by each call; a PerdureAgent does the same to its own. Like an agent's, all requests are repeated until
 * there is an answer. They reject with a ProblemError if the server refuses, an AnsweredError if something
 * else was answered before; with a ConnectionLostError if no answer came; with the signal's reason.
 */
export class PerdureClient {
  private readonly baseUrl: string;
  private readonly headers: Record<string, string>;
  private readonly transport: Transport;

  /** Throws a RangeError that names the option at fault. */
  constructor(config: PerdureConfig & { baseUrl: string; headers?: Record<string, string> }) {
    this.baseUrl = trimmed(config.baseUrl);
    this.headers = config.headers ?? {};
    this.transport = transportOf(config);
  }

  /** A page of what waits for people over all threads, the oldest first. */
  approvals(filter: ApprovalFilter = {}, options: CommandOptions = {}): Promise<ApprovalPage> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
    const suffix = query.size > 0 ? `?${query}` : "";
    return ask(this.transport, { url: `${this.baseUrl}/v1/approvals${suffix}`, headers: this.headers, ...options });
  }

  /** Decides about an approval: see PerdureAgent.decide. */
  decide(threadId: string, approvalId: string, decision: Decision, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(approvalURL(this.baseUrl, threadId, approvalId), decision, options);
  }

  /** Gives the result of a tool call to a run that waits for it: see PerdureAgent.sendToolResult. */
  toolResult(threadId: string, result: ToolResult, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(threadURL(this.baseUrl, threadId) + "/tool-results", result, options);
  }

  /** Cancels a run: it keeps what it has said. Of a run that is over nothing changes. */
  async cancel(threadId: string, runId: string, reason?: string, options: CommandOptions = {}): Promise<void> {
    await this.send(runURL(this.baseUrl, threadId, runId) + "/cancel", { reason }, options);
  }

  /** Stops the active run of a thread before its next step. */
  async pause(threadId: string, options: CommandOptions = {}): Promise<void> {
    await this.send(threadURL(this.baseUrl, threadId) + "/pause", {}, options);
  }

  /** Lets a paused run of a thread go on. */
  async resume(threadId: string, options: CommandOptions = {}): Promise<void> {
    await this.send(threadURL(this.baseUrl, threadId) + "/resume", {}, options);
  }

  private send(url: string, body: object, options: CommandOptions): Promise<Accepted> {
    return send(this.transport, { url, headers: this.headers, body, ...options });
  }
}
