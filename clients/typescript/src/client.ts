import { type Accepted, type CommandOptions, type Decision, type Proposal, request, send, type ToolResult } from "./commands.js";
import { type PerdureConfig, transportOf, trimmed } from "./config.js";
import { ThreadCommands, type ThreadCommand } from "./thread_commands.js";
import type { Transport } from "./transport.js";

/** An open or decided interrupt: the approval of a tool call, or a question. */
export interface Approval {
  id: string;
  threadId: string;
  runId: string;
  agent: string;
  toolCallId: string;
  toolName: string;
  /** The arguments. Long arguments are omitted, with `argsTruncated`; the thread has them. */
  args?: Record<string, unknown>;
  argsTruncated?: boolean;
  argsDigest: string;
  /** `tool_call` for the approval of a call; another value for a question, which needs an answer with `content`. */
  reason: string;
  message: string;
  /** The JSON Schema of the answer to a question. */
  responseSchema?: Record<string, unknown>;
  /** The time in RFC 3339, as all times. */
  requestedAt: string;
  expiresAt?: string;
  /** Subjects, or `role:name`; empty = every caller that may use the thread. */
  approvers: string[];
  /** The path of the pipeline step that raised the interrupt. */
  step?: string;
  /** How many approvers must vote for the same arguments. */
  quorum: number;
  /** The votes that count so far. */
  decisions: Vote[];
  /** The votes while a quorum is incomplete: first those for `args`, then those for an edit. */
  proposals?: Proposal[];
  /** The status, only in a list of decided approvals. */
  status?: "open" | "decided" | "expired";
}

/** The decision of one approver. */
export interface Vote {
  decision: Decision["decision"];
  by?: string;
  at: string;
  /** The channel of the decision, as its client reports it. */
  channel?: "input" | "http" | "websocket" | "batch" | "link" | "cli";
  reason?: string;
  argsDigest?: string;
  /** The arguments of an edit. Long arguments are omitted, with `truncated`. */
  args?: Record<string, unknown>;
  /** The content of an answer. */
  content?: unknown;
  truncated?: boolean;
  /** The scope of an approval that covers further calls. */
  remember?: "arguments" | "tool";
}

/** Filter of a list of approvals. */
export interface ApprovalFilter {
  /** `open`, the default, or `decided`: approvals that were decided in the last 30 days, latest first. */
  status?: "open" | "decided";
  agent?: string;
  tool?: string;
  thread?: string;
  /** Only approvals that have waited at least this long, such as `4h`. Not with `decided`. */
  olderThan?: string;
  /** Only approvals that this approver may decide: `me`, a subject, or `role:name`. Not with `decided`. */
  assignee?: string;
  /** The most entries of a page, 1 to 500. Default 100. */
  limit?: number;
  /** `nextCursor` of the previous page; undefined = the first page. */
  cursor?: string | undefined;
  /** The `cursor` of an acknowledged decision: the page shows its effect. */
  waitFor?: string | undefined;
}

export interface ApprovalPage {
  items: Approval[];
  /** The cursor of the next page; undefined = this is the last page. */
  nextCursor?: string;
  /** The cursor from which `GET /v1/approvals/events` continues after the page; none with `decided`. */
  eventsCursor?: string;
}

/**
 * A client for commands to any thread, for inboxes, consoles and programs. It reads no events; a PerdureAgent has the same
 * commands for its own thread. Every request is repeated until the server answers. A request rejects with a ProblemError
 * if the server refuses it, with an AnsweredError if another answer or decision is recorded, with a ConnectionLostError
 * if all attempts fail, and with the reason of an aborted signal.
 */
export class PerdureClient {
  private readonly baseUrl: string;
  private readonly headers: Record<string, string>;
  private readonly transport: Transport;
  private readonly commands: ThreadCommands;

  /** Throws a RangeError that names an invalid option. */
  constructor(config: PerdureConfig & { baseUrl: string; headers?: Record<string, string> }) {
    this.baseUrl = trimmed(config.baseUrl);
    this.headers = config.headers ?? {};
    this.transport = transportOf(config, this.baseUrl);
    this.commands = new ThreadCommands(this.baseUrl);
  }

  /** Returns a page of the approvals of all threads: open ones, oldest first, or decided ones. */
  approvals(filter: ApprovalFilter = {}, options: CommandOptions = {}): Promise<ApprovalPage> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
    const suffix = query.size > 0 ? `?${query}` : "";
    return request(this.transport, { url: `${this.baseUrl}/v1/approvals${suffix}`, headers: this.headers, ...options });
  }

  /** Decides an approval: see PerdureAgent.decide. */
  decide(threadId: string, approvalId: string, decision: Decision, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(this.commands.decide(threadId, approvalId, decision), options);
  }

  /** Sends the result of a client tool call: see PerdureAgent.sendToolResult. */
  toolResult(threadId: string, result: ToolResult, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(this.commands.toolResult(threadId, result), options);
  }

  /** Cancels a run. Its messages stay. A run that has ended does not change. */
  async cancel(threadId: string, runId: string, reason?: string, options: CommandOptions = {}): Promise<void> {
    await this.send(this.commands.cancel(threadId, runId, reason), options);
  }

  /** Pauses the active run of a thread before its next step. */
  async pause(threadId: string, options: CommandOptions = {}): Promise<void> {
    await this.send(this.commands.pause(threadId), options);
  }

  /** Resumes the paused run of a thread. */
  async resume(threadId: string, options: CommandOptions = {}): Promise<void> {
    await this.send(this.commands.resume(threadId), options);
  }

  private send(command: ThreadCommand, options: CommandOptions): Promise<Accepted> {
    return send(this.transport, { ...command, headers: this.headers, ...options });
  }
}
