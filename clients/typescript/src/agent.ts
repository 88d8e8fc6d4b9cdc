import {
  type AgentSubscriber,
  type BaseEvent,
  HttpAgent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
  runHttpRequest,
  transformHttpEventStream,
} from "@ag-ui/client";
import { Acknowledged, later } from "./acknowledgements.js";
import { type Accepted, type CommandOptions, type Decision, send, type ToolResult } from "./commands.js";
import { agentNameOf, baseUrlOf, type PerdureAgentConfig, type Retraction, transportOf, urlOf } from "./config.js";
import { OpenInterrupts } from "./interrupts.js";
import type { Problem } from "./problem.js";
import { type RunInit, runFetch, threadStream } from "./streams.js";
import { type ThreadCommand, ThreadCommands } from "./thread_commands.js";
import type { Transport } from "./transport.js";

/** Parameters of `runAgent`: those of HttpAgent. */
export interface RunParameters extends RunAgentParameters {
  /** Stops reading when it is aborted. The run continues. */
  abortController?: AbortController;
}

/** Parameters of `connectAgent`. */
export interface ConnectParameters extends RunParameters {
  /** Whether to follow later runs until the agent is aborted. Default: `follow` of the configuration. */
  follow?: boolean;
  /**
   * The cursor of an acknowledgement that another agent or client received: the stream shows its effect. The agent always
   * waits for the effects of its own commands.
   */
  waitFor?: string;
}

/** The name of the CUSTOM event that announces a retraction. */
const retracted = "perdure.retracted";

// Agents share it with their clones.
const observer: AgentSubscriber = { onEvent: ({ event, agent }) => (agent as PerdureAgent).observe(event) };

/**
 * An HttpAgent whose runs continue when a connection is lost. After a reconnect it continues with the next event. It can
 * also join threads, cancel runs, decide approvals and send tool results. Like its base class, it reads one run or thread
 * at a time. `abortRun` and `detachActiveRun` do not cancel the run.
 */
export class PerdureAgent extends HttpAgent {
  // Not #private: HttpAgent makes its clones without a constructor.
  private baseUrl: string;
  private transport: Transport;
  private commands: ThreadCommands;
  private followsByDefault: boolean;
  private isFollowing = false;
  private isConnecting = false;
  private waitFor: string | undefined;
  private acknowledged = new Map<string, Acknowledged>(); // by thread
  private reading = new AbortController();
  private currentRun: { thread: string; run: string } | undefined;
  private newestCursor: { thread: string; cursor: string } | undefined;
  private listeners: Pick<PerdureAgentConfig, "onRetracted" | "onDecided">;
  private openInterrupts = new Map<string, OpenInterrupts>(); // by thread

  /** Throws a TypeError or a RangeError that names an invalid option. */
  constructor(config: PerdureAgentConfig) {
    const baseUrl = baseUrlOf(config);
    const transport = transportOf(config, baseUrl);
    super({ ...config, url: urlOf(config), fetch: runFetch(transport, baseUrl, agentNameOf(config)) });
    this.baseUrl = baseUrl;
    this.commands = new ThreadCommands(baseUrl);
    this.transport = transport;
    this.followsByDefault = config.follow ?? false;
    const { onRetracted, onDecided } = config;
    this.listeners = { onRetracted, onDecided };
    if (onRetracted || onDecided) this.subscribe(observer);
  }

  /** Returns an agent with the same options, thread and messages. It can read while this one runs. */
  override clone(): PerdureAgent {
    const clone = super.clone() as PerdureAgent;
    const { baseUrl, transport, commands, followsByDefault, isFollowing, currentRun, newestCursor, listeners } = this;
    const acknowledged = new Map([...this.acknowledged].map(([thread, known]) => [thread, known.clone()]));
    const own = { openInterrupts: new Map<string, OpenInterrupts>(), isConnecting: false, waitFor: undefined, reading: new AbortController() };
    return Object.assign(clone, { baseUrl, transport, commands, followsByDefault, isFollowing, currentRun, newestCursor, listeners, acknowledged, ...own });
  }

  /** Runs the agent and reads the run to its end, over as many connections as necessary. */
  override runAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    return this.readWith(() => super.runAgent(parameters, subscriber));
  }

  /**
   * Reads the thread: its history, and then the active run to its end. With `follow` it reads every later run, until the
   * agent is aborted or detached. The messages of the thread replace those of the agent. A thread that does not exist yet
   * has no events.
   */
  override connectAgent(parameters: ConnectParameters = {}, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const { follow = this.followsByDefault, abortController = new AbortController(), waitFor, ...rest } = parameters;
    this.abortController = abortController; // an aborted controller cannot be used again
    this.isFollowing = follow;
    this.waitFor = waitFor;
    this.isConnecting = true;
    try {
      return this.readWith(() => super.connectAgent(rest, subscriber));
    } finally {
      this.isConnecting = false; // the input is prepared by now
    }
  }

  /**
   * Cancels the run that the agent reads, or read last. Its messages stay, and its stream ends with the outcome `cancelled`
   * (before AG-UI 1.0: RUN_ERROR with that code). Resolves when the request is durable. A run that has ended does not
   * change.
   *
   * Rejects like all commands: with a ProblemError if the server refuses the request, with a ConnectionLostError if all
   * attempts fail and the effect is unknown, and with the reason of an aborted signal.
   */
  async cancel(reason?: string, options: CommandOptions = {}): Promise<void> {
    const { currentRun } = this;
    if (!currentRun) throw new Error("the agent has no run to cancel");
    // The request of a new run may not have reached the server yet.
    const isEarly = ({ code }: Problem) => code === "unknown_run" && this.isRunning && this.currentRun === currentRun;
    await this.send(this.commands.cancel(currentRun.thread, currentRun.run, reason), options, isEarly);
  }

  /**
   * Sends the result of a client tool call to a held run of this thread. Rejects with an AnsweredError, which has the
   * recorded result, if another result was accepted before.
   */
  async sendToolResult(result: ToolResult, options: CommandOptions = {}): Promise<Accepted> {
    const { threadId } = this;
    const accepted = await this.send(this.commands.toolResult(threadId, result), options);
    this.acknowledgedOn(threadId).answered(result, accepted);
    return accepted;
  }

  /**
   * Decides an approval of this thread. Rejects with an AnsweredError, which has the recorded decision, if another decision
   * was made before, and with a ProblemError with status 410 if the approval has expired.
   */
  async decide(approvalId: string, decision: Decision, options: CommandOptions = {}): Promise<Accepted> {
    const { threadId } = this;
    const accepted = await this.send(this.commands.decide(threadId, approvalId, decision), options);
    this.acknowledgedOn(threadId).decided(approvalId, decision, accepted);
    return accepted;
  }

  /** Pauses the active run of this thread before its next step. Without an active run it rejects with a ProblemError with status 409. */
  async pause(options: CommandOptions = {}): Promise<void> {
    await this.send(this.commands.pause(this.threadId), options);
  }

  /** Resumes the paused run of this thread. Without an active run it rejects with a ProblemError with status 409. */
  async resume(options: CommandOptions = {}): Promise<void> {
    await this.send(this.commands.resume(this.threadId), options);
  }

  protected override prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput {
    const input = super.prepareRunAgentInput(parameters);
    this.currentRun = this.isConnecting ? undefined : { thread: input.threadId, run: input.runId };
    if (this.isConnecting) return input;
    return this.withSeen(this.acknowledgedOn(input.threadId).complete(input, this.pendingInterrupts));
  }

  // Sends the cursor of the last event in this agent's list, so the server does not take later messages for removed ones.
  private withSeen(input: RunAgentInput): RunAgentInput {
    if (this.newestCursor?.thread !== input.threadId) return input;
    const forwardedProps = (input.forwardedProps ?? {}) as { perdure?: object };
    if (typeof forwardedProps !== "object") return input;
    const perdure = { seen: this.newestCursor.cursor, ...forwardedProps.perdure };
    return { ...input, forwardedProps: { ...forwardedProps, perdure } };
  }

  // Cursors sort as text. A run that is read again has older cursors.
  private noteCursor(thread: string, cursor: string): void {
    if (this.newestCursor?.thread !== thread || this.newestCursor.cursor < cursor) this.newestCursor = { thread, cursor };
  }

  protected override async onInitialize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
    const { pendingInterrupts } = this;
    const acknowledged = this.acknowledgedOn(input.threadId);
    // A reader resolves no interrupts, and an input resolves only those without a decision.
    this.pendingInterrupts = this.isConnecting ? [] : pendingInterrupts.filter(({ id }) => !acknowledged.isDecided(id));
    try {
      await super.onInitialize(input, subscribers);
    } finally {
      this.pendingInterrupts = pendingInterrupts;
    }
  }

  protected override requestInit(input: RunAgentInput): RunInit {
    const { cursor: waitFor } = this.acknowledgedOn(input.threadId);
    const onCursor = (cursor: string) => this.noteCursor(input.threadId, cursor);
    const onSteered = (run: string) => void (this.currentRun = { thread: input.threadId, run });
    return { ...super.requestInit(input), signal: this.readSignal(), waitFor, onCursor, onSteered };
  }

  protected override connect(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    const { threadId } = input;
    const view = {
      base: this.baseUrl,
      threadId,
      protocolVersion: (input as { protocolVersion?: string }).protocolVersion,
      follow: this.isFollowing,
      waitFor: later(this.waitFor, this.acknowledgedOn(threadId).cursor),
      headers: this.headers,
    };
    const response = () =>
      threadStream(this.transport, view, this.readSignal(), {
        onRun: (run) => (this.currentRun = { thread: threadId, run }),
        onCursor: (cursor) => this.noteCursor(threadId, cursor),
      });
    return transformHttpEventStream(runHttpRequest(response), this.debugLogger);
  }

  /** @internal Calls the listeners of the configuration. */
  observe(event: BaseEvent): void {
    const { onRetracted, onDecided } = this.listeners;
    const custom = event as BaseEvent & { name?: string; value?: unknown };
    if (event.type === "CUSTOM" && custom.name === retracted) onRetracted?.(custom.value as Retraction);
    const open = this.openInterrupts.get(this.threadId) ?? new OpenInterrupts();
    this.openInterrupts.set(this.threadId, open);
    for (const interrupt of open.observe(event as never)) onDecided?.({ threadId: this.threadId, interrupt });
  }

  // HttpAgent continues to read a stream after it was detached, or after its verifier has failed. A resumable stream
  // would then never end, so it is aborted.
  private async readWith<T>(action: () => Promise<T>): Promise<T> {
    const reading = (this.reading = new AbortController());
    try {
      return await action();
    } finally {
      reading.abort();
      if (this.reading === reading) this.reading = new AbortController();
    }
  }

  private acknowledgedOn(thread: string): Acknowledged {
    const acknowledged = this.acknowledged.get(thread) ?? new Acknowledged();
    this.acknowledged.set(thread, acknowledged);
    return acknowledged;
  }

  private readSignal(): AbortSignal {
    return AbortSignal.any([this.abortController.signal, this.reading.signal]);
  }

  private send(command: ThreadCommand, { signal }: CommandOptions, isEarly?: (problem: Problem) => boolean): Promise<Accepted> {
    return send(this.transport, { ...command, headers: this.headers, signal, isEarly });
  }
}
