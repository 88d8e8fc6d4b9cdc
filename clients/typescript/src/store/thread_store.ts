import type { AgentSubscriber, BaseEvent, Context, Interrupt, Message, Tool } from "@ag-ui/client";
import { later } from "../acknowledgements.js";
import { PerdureAgent } from "../agent.js";
import type { PerdureClient } from "../client.js";
import { firstTransportOf } from "../config.js";
import type { TransportName } from "../connection.js";
import type { Accepted, ContentPart, Decision, ToolResult } from "../commands.js";
import { textOf } from "../content.js";
import { newID } from "../identifier.js";
import { OpenInterrupts, type PendingToolCall } from "../interrupts.js";
import { resultIn } from "../result.js";
import type { Approval } from "../schemas.js";
import { Calls } from "./calls.js";
import { ExternalStore } from "./external_store.js";
import { share, shareByID } from "./structural_sharing.js";
import { type Subagent, Subagents } from "./subagents.js";

/** Options of a ThreadStore. */
export interface ThreadStoreOptions {
  /** The ID of the thread. It need not exist yet. */
  threadId: string;
  /** The agent that answers. */
  agent: string;
  /** Tools that this client runs. */
  tools?: Tool[];
  /** Further information for the model. */
  context?: Context[];
  /** Sent with each run. The member `perdure` has options of Perdure. */
  forwardedProps?: Record<string, unknown>;
}

/** The status of a thread: a run is active, the thread waits for decisions or results, or neither. */
export type ThreadStatus = "idle" | "running" | "waiting";

/** Whether the store reads: before the server has accepted its stream, since then, after a loss, and after it has given up. */
export type ConnectionStatus = "connecting" | "connected" | "reconnecting" | "closed";

/** The active or last run of a thread. */
export interface RunSnapshot {
  status: ThreadStatus;
  /** Absent before the first run. */
  runId?: string;
  /** Why the last run failed. */
  error?: { code: string; message: string };
  /** The result of the last run, if it has finished and its agent has an output: JSON that fits the schema. */
  result?: unknown;
  /** Whether the last run was cancelled. */
  isCancelled?: boolean;
  /** Whether a model or tools are being called. A paused run ends these calls first. */
  isCalling?: boolean;
}

/** An interrupt that waits for a decision. */
export type OpenInterrupt = Interrupt & {
  /** The tool call, the approvers and the votes. Absent until the inbox has it. */
  approval?: Approval;
};

/** A message of this client that the server has accepted, and that no model has received yet. */
export interface PendingMessage {
  messageId: string;
  /** `queued`: it begins a run after the active one. `steering`: the active run receives it before its next model call. */
  kind: "queued" | "steering";
  /** The run that it begins, or the active run. */
  runId: string;
  /** Whether `cancelPending` has cancelled its run. Its turn still comes, and then the conversation has it without an answer. */
  isCancelled: boolean;
}

/** A thread at one moment. Parts that have not changed are identical in the next snapshot. */
export interface ThreadSnapshot<State = unknown> {
  threadId: string;
  /** The conversation, with messages that this tab sends and the server has not shown yet. */
  messages: readonly Message[];
  /** The state of the thread; {} before the first one. */
  state: State;
  /** The active or last run. */
  run: RunSnapshot;
  /** What waits for decisions of people. */
  interrupts: readonly OpenInterrupt[];
  /** Client tool calls that wait for their results. */
  toolCalls: readonly PendingToolCall[];
  /** Subagents and branches of pipelines: all of the active or last run, and earlier ones that have messages. */
  subagents: readonly Subagent[];
  /** Whether the server has accepted the stream of the store. The thread need not have events. */
  connection: ConnectionStatus;
  /** How events arrive. `sse` instead of `websocket` while a proxy refuses WebSockets: all works, with more requests. */
  transport: TransportName;
  /** Whether a message is sent and not accepted yet. */
  isSending: boolean;
  /** Messages at the end of `messages` that wait for their turn: a run is active, or the thread waits for decisions. */
  pending: readonly PendingMessage[];
  /** Why the store has given up, with `closed`. */
  connectionError?: { code: string; message: string };
}

/** Members of the input of one run, in addition to those of the store. */
export interface SendOptions {
  /** The ID of the run. Default: a random one. */
  runId?: string;
  /** Replaces the state of the thread. */
  state?: unknown;
  /** Tools that this client runs, in place of those of the store. */
  tools?: Tool[];
  /** The revision of the agent: a published one or a draft. Default: the current one. */
  revision?: string;
  /** Added to those of the store. */
  forwardedProps?: Record<string, unknown>;
}

/**
 * One thread for a user interface. It follows the thread, so that all tabs show the same, and a reload continues in the
 * middle of a message. It starts to read with its first listener, and stops a second after the last one has left. The
 * actions reject as those of PerdureClient.
 */
export class ThreadStore<State = unknown> extends ExternalStore<ThreadSnapshot<State>> {
  private agent: PerdureAgent;
  private readonly subscriber: AgentSubscriber;
  private open = new OpenInterrupts();
  private subagents = new Subagents();
  private starting: Promise<string> | undefined; // the last run that the server has not accepted yet
  private run: RunSnapshot = { status: "idle" };
  private readonly calls = new Calls();
  private runBeforeError: RunSnapshot | undefined;
  private connection: ConnectionStatus = "connecting";
  private connectionError: ThreadSnapshot["connectionError"];
  private transport: TransportName;
  private outgoing: Message[] = []; // sent by this tab, not in the stream yet
  private readonly accepted = new Map<string, PendingMessage>(); // by the ID of a message that is still outgoing
  private sending = 0;
  private acknowledged: string | undefined;
  private readonly decided = new Set<string>(); // interrupts that are decided before the stream shows it
  private readonly approvals = new Map<string, Approval>();
  private watching: AbortController | undefined;

  constructor(
    private readonly client: PerdureClient,
    private readonly options: ThreadStoreOptions,
  ) {
    super({
      threadId: options.threadId,
      messages: [],
      state: {} as State,
      run: { status: "idle" },
      interrupts: [],
      toolCalls: [],
      subagents: [],
      connection: "connecting",
      transport: firstTransportOf(client.config),
      isSending: false,
      pending: [],
    });
    this.transport = firstTransportOf(client.config);
    this.agent = this.newAgent();
    this.subscriber = {
      onEvent: ({ event }) => this.observe(event as BaseEvent & Record<string, unknown>),
      onMessagesChanged: this.invalidate,
      onStateChanged: this.invalidate,
    };
  }

  /** The ID of the thread. */
  get threadId(): string {
    return this.options.threadId;
  }

  /** Sends a user message, after those that are being sent, and starts a run. Resolves with the ID of the run when it is durable. */
  send(content: string | ContentPart[], options: SendOptions = {}): Promise<string> {
    return this.start({ id: newID(), role: "user", content } as Message, options);
  }

  /** Replaces a user message, removes all messages after it, and starts a run. */
  edit(messageId: string, content: string | ContentPart[], options: SendOptions = {}): Promise<string> {
    return this.start({ id: messageId, role: "user", content } as Message, options);
  }

  /** Has the last user message answered again. */
  async regenerate(options: SendOptions = {}): Promise<string> {
    const last = this.agent.messages.findLast(({ role }) => role === "user");
    if (!last) throw new Error("the thread has no user message to answer again");
    return this.start(structuredClone(last), options);
  }

  /**
   * Decides an approval or answers a question. The interrupt leaves the snapshot as soon as the server has accepted the
   * decision. Rejects with an AnsweredError if another decision is recorded.
   */
  async decide(interruptId: string, decision: Decision): Promise<Accepted> {
    const accepted = await this.client.decide(this.threadId, interruptId, decision);
    this.acknowledged = later(this.acknowledged, accepted.cursor);
    if (!accepted.missing) this.decided.add(interruptId);
    this.invalidate();
    return accepted;
  }

  /** Sends the result of a client tool call. */
  async sendToolResult(result: ToolResult): Promise<Accepted> {
    const accepted = await this.client.toolResult(this.threadId, result);
    this.acknowledged = later(this.acknowledged, accepted.cursor);
    this.decided.add(result.toolCallId);
    this.invalidate();
    return accepted;
  }

  /** Cancels the active run, or the one that the server has not accepted yet. Without such a run it has no effect. */
  async cancel(reason?: string): Promise<void> {
    const started = await this.starting?.catch(() => undefined);
    const { status, runId } = this.run;
    const active = started ?? (status === "running" ? runId : undefined);
    if (active !== undefined) await this.client.cancel(this.threadId, active, reason);
  }

  /** Cancels the run that a queued message begins. The message stays in the conversation, and is not answered. */
  async cancelPending(messageId: string, reason?: string): Promise<void> {
    const pending = this.accepted.get(messageId);
    if (pending?.kind !== "queued") throw new Error("no such message is queued");
    await this.client.cancel(this.threadId, pending.runId, reason);
    this.accepted.set(messageId, { ...pending, isCancelled: true });
    this.invalidate();
  }

  /** Adds a message to the active run. Without an active run it rejects with the code `not_active`. */
  async steer(content: string | ContentPart[]): Promise<Accepted> {
    return this.outgo({ id: newID(), role: "user", content } as Message, (message) => this.client.steer(this.threadId, message));
  }

  /** Pauses the active run before its next step. */
  pause(): Promise<void> {
    return this.client.pause(this.threadId);
  }

  /** Resumes the paused run. */
  resume(): Promise<void> {
    return this.client.resume(this.threadId);
  }

  /** Reads the thread again, after the store has given up. */
  reconnect(): void {
    this.restart();
  }

  protected async read(signal: AbortSignal): Promise<void> {
    const agent = this.newAgent();
    const subscriber: AgentSubscriber = {
      ...this.subscriber,
      // Until the thread is read again, the store shows what it had. The agent ends an aborted stream with a RUN_ERROR.
      onEvent: (observed) => {
        if (signal.aborted) return;
        if (this.agent !== agent) Object.assign(this, { agent, open: new OpenInterrupts(), subagents: new Subagents() });
        return this.subscriber.onEvent?.(observed);
      },
    };
    this.connection = "connecting";
    this.connectionError = undefined;
    this.invalidate();
    const abortController = new AbortController();
    const abort = () => {
      abortController.abort();
      this.watching?.abort();
    };
    signal.addEventListener("abort", abort, { once: true });
    try {
      await agent.connectAgent({ abortController }, subscriber);
    } catch (error) {
      this.connectionError = { code: (error as { code?: string }).code ?? "refused", message: String((error as Error).message ?? error) };
    }
    if (signal.aborted) return;
    this.connection = "closed";
    // The last RUN_ERROR is that of the stream: the run has not failed.
    if (this.connectionError === undefined && this.run.error) {
      this.connectionError = this.run.error;
      this.run = this.runBeforeError ?? this.run;
    }
    this.invalidate();
  }

  protected compute(previous: ThreadSnapshot<State>): ThreadSnapshot<State> {
    const { messages, state } = this.agent;
    const known = new Set(messages.map(({ id }) => id));
    this.outgoing = this.outgoing.filter(({ id }) => !known.has(id));
    for (const id of this.accepted.keys()) if (known.has(id)) this.accepted.delete(id);
    const shown = messages.filter(({ id }) => !id.startsWith("perdure.unplaced")).map(withFailure);
    const interrupts = [...this.open.interrupts.values()].filter(({ id }) => !this.decided.has(id)).map((interrupt) => this.withApproval(interrupt));
    const toolCalls = this.open.toolCalls(messages).filter(({ toolCallId }) => !this.decided.has(toolCallId));
    this.watchApprovals(interrupts.length > 0);
    const run = this.runWith(interrupts.length + toolCalls.length > 0);
    const next: ThreadSnapshot<State> = {
      threadId: this.threadId,
      messages: shareByID(previous.messages, [...shown, ...this.outgoing]),
      state: share(previous.state, state as State),
      run: share(previous.run, run),
      interrupts: shareByID(previous.interrupts, interrupts),
      toolCalls: share(previous.toolCalls, toolCalls),
      subagents: shareByID(previous.subagents, this.subagents.list(messages, run.status)),
      connection: this.connection,
      transport: this.transport,
      isSending: this.sending > 0,
      pending: share(previous.pending, this.pendingIn(run)),
      ...(this.connectionError && { connectionError: this.connectionError }),
    };
    const names = Object.keys({ ...previous, ...next }) as (keyof ThreadSnapshot)[];
    return names.every((name) => previous[name] === next[name]) ? previous : next;
  }

  // A run that has ended waits for nothing, even if it failed before the conversation had its message.
  private forgetAccepted(): void {
    for (const { messageId, runId } of this.accepted.values()) if (runId === this.run.runId) this.accepted.delete(messageId);
  }

  // A message whose run has begun, or begins at once, waits for nothing.
  private pendingIn({ status, runId }: RunSnapshot): PendingMessage[] {
    return [...this.accepted.values()].filter(({ kind, runId: own }) => status !== "idle" && (kind === "steering") === (own === runId));
  }

  private runWith(isOpen: boolean): RunSnapshot {
    const { status, ...run } = this.run;
    return { ...run, ...(this.calls.isActive && { isCalling: true }), status: status === "running" ? "running" : isOpen ? "waiting" : "idle" };
  }

  private withApproval(interrupt: Interrupt): OpenInterrupt {
    const approval = this.approvals.get(interrupt.id);
    return approval ? { ...interrupt, approval } : interrupt;
  }

  private newAgent(): PerdureAgent {
    const { config } = this.client;
    const connected = (connection: ConnectionStatus) => {
      this.connection = connection;
      this.invalidate();
    };
    return new PerdureAgent({
      ...config,
      agent: this.options.agent,
      threadId: this.threadId,
      follow: true,
      onRetry: (retry) => {
        connected("reconnecting");
        config.onRetry?.(retry);
      },
      onConnected: () => {
        connected("connected");
        config.onConnected?.();
      },
      onTransportChanged: (transport) => {
        this.transport = transport;
        this.invalidate();
        config.onTransportChanged?.(transport);
      },
    });
  }

  private observe(event: BaseEvent & Record<string, unknown>): void {
    this.calls.observe(event);
    if (event.type === "RUN_STARTED") this.run = { status: "running", runId: String(event.runId) };
    if (event.type === "RUN_FINISHED") {
      const failure = (event.metadata as { "perdure.error"?: { code: string; message: string } } | undefined)?.["perdure.error"];
      const isCancelled = (event.outcome as { type?: string } | undefined)?.type === "cancelled";
      const result = resultIn(event);
      this.run = { ...this.run, status: "idle", ...(failure && { error: failure }), ...(result !== undefined && { result }), ...(isCancelled && { isCancelled }) };
    }
    if (event.type === "RUN_ERROR") {
      this.runBeforeError = this.run;
      this.run = { ...this.run, status: "idle", error: { code: String(event.code), message: String(event.message) } };
    }
    if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") this.forgetAccepted();
    this.subagents.observe(event);
    for (const { id } of this.open.observe(event)) this.decided.delete(id);
    if (event.type === "TOOL_CALL_RESULT") this.decided.delete(String(event.toolCallId));
    this.invalidate();
  }

  private start(message: Message, { forwardedProps, revision, runId = newID(), ...options }: SendOptions): Promise<string> {
    const { agent, threadId, tools = [], context = [] } = this.options;
    const props = { ...this.options.forwardedProps, ...forwardedProps };
    const previous = this.starting;
    const started = this.outgo(message, async () => {
      await previous?.catch(() => {}); // messages arrive in the order in which they were sent
      const input = { threadId, runId, messages: [message], tools, context, forwardedProps: props, ...options };
      const run = await this.client.startRun(agent, input, { waitFor: this.acknowledged, revision });
      this.accepted.set(message.id, { messageId: message.id, kind: run === runId ? "queued" : "steering", runId: run, isCancelled: false });
      return run;
    });
    this.starting = started;
    const end = () => {
      if (this.starting === started) this.starting = undefined;
    };
    void started.then(end, end);
    return started;
  }

  // Shows a message while it is sent, and removes it if the server refuses it.
  private async outgo<Answer>(message: Message, action: (message: Message) => Promise<Answer>): Promise<Answer> {
    this.outgoing.push(message);
    this.sending++;
    this.invalidate();
    try {
      return await action(message);
    } catch (error) {
      this.outgoing = this.outgoing.filter((sent) => sent !== message);
      throw error;
    } finally {
      this.sending--;
      this.invalidate();
    }
  }

  // While interrupts are open, the inbox tells of votes, and of the decisions that do not continue the thread yet.
  private watchApprovals(isOpen: boolean): void {
    if (!isOpen) this.watching?.abort();
    if (!isOpen || (this.watching && !this.watching.signal.aborted)) return;
    this.watching = new AbortController();
    void this.followApprovals(this.watching.signal).catch(() => {}); // the thread's own stream tells of the outcome
  }

  private async followApprovals(signal: AbortSignal): Promise<void> {
    const { items, eventsCursor } = await this.client.approvals({ thread: this.threadId, limit: 500, waitFor: this.acknowledged }, { signal });
    for (const approval of items) this.approvals.set(approval.id, approval);
    this.invalidate();
    // Without a filter: all threads of all tabs share one stream.
    for await (const { type, approval } of this.client.approvalEvents({ after: eventsCursor }, { signal })) {
      if (approval.threadId !== this.threadId) continue;
      this.approvals.set(approval.id, approval);
      if (type === "decided" || type === "expired") this.decided.add(approval.id);
      this.invalidate();
    }
  }
}

// The event of a result has no error, as its message in a snapshot has: the metadata tells of the failure.
function withFailure(message: Message): Message {
  if (message.role !== "tool" || message.error || !(message as { metadata?: Record<string, unknown> }).metadata?.["perdure.failed"]) return message;
  return { ...message, error: textOf(message) };
}
