import {
  type AgentSubscriber,
  HttpAgent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
  runHttpRequest,
  transformHttpEventStream,
} from "@ag-ui/client";
import { Acknowledged, later } from "./acknowledged.js";
import { type Accepted, type CommandOptions, type Decision, send, type ToolResult } from "./commands.js";
import { baseUrlOf, type PerdureAgentConfig, transportOf, urlOf } from "./config.js";
import type { Problem } from "./problem.js";
import { approvalURL, runURL, threadURL } from "./routes.js";
import { type RunInit, runFetch, threadStream } from "./streams.js";
import type { Transport } from "./transport.js";

export interface RunParameters extends RunAgentParameters {
  abortController?: AbortController;
}

export interface ConnectParameters extends RunParameters {
  /** Go on when no run is active. Default: as configured. */
  follow?: boolean;
  /**
   * The cursor of something that the server has accepted through another agent or a client: the thread is shown with
   * its effect. What this agent has sent itself is waited for in any case.
   */
  waitFor?: string;
}

/**
 * An HttpAgent whose runs outlive their connections. It comes back to the very next event, joins
 * threads, cancels runs, and answers what a run waits for. Like its base class, it watches one run or
 * thread at a time. Leaving, by `abortRun` or `detachActiveRun`, cancels nothing.
 */
export class PerdureAgent extends HttpAgent {
  // Not #private: HttpAgent makes its clones without a constructor.
  private baseUrl: string;
  private transport: Transport;
  private follows: boolean;
  private following = false;
  private joining = false;
  private waitFor: string | undefined;
  private acknowledged = new Map<string, Acknowledged>(); // by thread
  private left = new AbortController();
  private watched: { thread: string; run: string } | undefined;
  private seen: { thread: string; cursor: string } | undefined;

  /** Throws a TypeError or a RangeError that names the option at fault. */
  constructor(config: PerdureAgentConfig) {
    const transport = transportOf(config);
    const baseUrl = baseUrlOf(config);
    super({ ...config, url: urlOf(config), fetch: runFetch(transport, baseUrl) });
    this.baseUrl = baseUrl;
    this.transport = transport;
    this.follows = config.follow ?? false;
  }

  override clone(): PerdureAgent {
    const clone = super.clone() as PerdureAgent;
    const { baseUrl, transport, follows, following, watched, seen } = this;
    const acknowledged = new Map([...this.acknowledged].map(([thread, known]) => [thread, known.clone()]));
    const own = { joining: false, waitFor: undefined, left: new AbortController() };
    return Object.assign(clone, { baseUrl, transport, follows, following, watched, seen, acknowledged, ...own });
  }

  override runAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    return this.watch(() => super.runAgent(parameters, subscriber));
  }

  /**
   * Shows the thread: its history, and then the active run to its end or, if followed, run after run
   * until it is aborted or detached. The agent's messages become the thread's. A thread that does
   * not exist yet has nothing to show.
   */
  override connectAgent(parameters: ConnectParameters = {}, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    const { follow = this.follows, abortController = new AbortController(), waitFor, ...rest } = parameters;
    this.abortController = abortController; // one that was aborted is of no use any more
    this.following = follow;
    this.waitFor = waitFor;
    this.joining = true;
    try {
      return this.watch(() => super.connectAgent(rest, subscriber));
    } finally {
      this.joining = false; // the input is prepared by now
    }
  }

  /**
   * Cancels the run that is watched, or was last: it keeps what it has said, and its stream ends by
   * itself, with the outcome `cancelled` (before AG-UI 1.0: RUN_ERROR with that code). Resolves when
   * the wish is durable; of a run that is over, nothing changes.
   *
   * Rejects like all commands: with a ProblemError, if the server refuses; with a ConnectionLostError,
   * if no answer came and it is unknown whether it took effect; with the signal's reason.
   */
  async cancel(reason?: string, options: CommandOptions = {}): Promise<void> {
    const { watched } = this;
    if (!watched) throw new Error("there is no run to cancel: none has begun");
    // A run that was asked for a moment ago may not have reached the server.
    const isEarly = ({ code }: Problem) => code === "unknown_run" && this.isRunning && this.watched === watched;
    await this.send(runURL(this.baseUrl, watched.thread, watched.run) + "/cancel", { reason }, options, isEarly);
  }

  /**
   * Gives the result of a tool call to a run of this thread that waits for it (hold mode). Another
   * result was accepted before: AnsweredError, with that result.
   */
  async sendToolResult(result: ToolResult, options: CommandOptions = {}): Promise<Accepted> {
    const { threadId } = this;
    const accepted = await this.send(threadURL(this.baseUrl, threadId) + "/tool-results", result, options);
    this.acknowledgedOn(threadId).answered(result, accepted);
    return accepted;
  }

  /**
   * Decides an approval of this thread. Another decision was made before: AnsweredError, with that
   * decision; it has expired: ProblemError with status 410.
   */
  async decide(approvalId: string, decision: Decision, options: CommandOptions = {}): Promise<Accepted> {
    const { threadId } = this;
    const accepted = await this.send(approvalURL(this.baseUrl, threadId, approvalId), decision, options);
    this.acknowledgedOn(threadId).decided(approvalId, decision, accepted);
    return accepted;
  }

  /** Stops the active run of this thread before its next step. None is active: ProblemError with status 409. */
  async pause(options: CommandOptions = {}): Promise<void> {
    await this.send(threadURL(this.baseUrl, this.threadId) + "/pause", {}, options);
  }

  /** Lets a paused run of this thread go on. None is active: ProblemError with status 409. */
  async resume(options: CommandOptions = {}): Promise<void> {
    await this.send(threadURL(this.baseUrl, this.threadId) + "/resume", {}, options);
  }

  protected override prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput {
    const input = super.prepareRunAgentInput(parameters);
    this.watched = this.joining ? undefined : { thread: input.threadId, run: input.runId };
    if (this.joining) return input;
    return this.withSeen(this.acknowledgedOn(input.threadId).complete(input, this.pendingInterrupts));
  }

  // Tells the server how far this agent's list goes: what came after that is not missing from it.
  private withSeen(input: RunAgentInput): RunAgentInput {
    if (this.seen?.thread !== input.threadId) return input;
    const forwardedProps = (input.forwardedProps ?? {}) as { perdure?: object };
    if (typeof forwardedProps !== "object") return input;
    const perdure = { seen: this.seen.cursor, ...forwardedProps.perdure };
    return { ...input, forwardedProps: { ...forwardedProps, perdure } };
  }

  // Cursors sort as text. A run that is shown again has older ones.
  private see(thread: string, cursor: string): void {
    if (this.seen?.thread !== thread || this.seen.cursor < cursor) this.seen = { thread, cursor };
  }

  protected override async onInitialize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
    const { pendingInterrupts } = this;
    const acknowledged = this.acknowledgedOn(input.threadId);
    // A reader has to answer none, and an input none that is decided.
    this.pendingInterrupts = this.joining ? [] : pendingInterrupts.filter(({ id }) => !acknowledged.isDecided(id));
    try {
      await super.onInitialize(input, subscribers);
    } finally {
      this.pendingInterrupts = pendingInterrupts;
    }
  }

  protected override requestInit(input: RunAgentInput): RunInit {
    const { cursor: waitFor } = this.acknowledgedOn(input.threadId);
    const onCursor = (cursor: string) => this.see(input.threadId, cursor);
    return { ...super.requestInit(input), signal: this.watchSignal(), waitFor, onCursor };
  }

  protected override connect(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    const response = () =>
      threadStream(this.transport, {
        base: this.baseUrl,
        thread: input.threadId,
        protocolVersion: (input as { protocolVersion?: string }).protocolVersion,
        follow: this.following,
        waitFor: later(this.waitFor, this.acknowledgedOn(input.threadId).cursor),
        headers: this.headers,
        signal: this.watchSignal(),
        onRun: (run) => (this.watched = { thread: input.threadId, run }),
        onCursor: (cursor) => this.see(input.threadId, cursor),
      });
    return transformHttpEventStream(runHttpRequest(response), this.debugLogger);
  }

  // HttpAgent goes on reading what nobody watches any more, be it detached or refused by its verifier.
  // That would never end here.
  private async watch<T>(action: () => Promise<T>): Promise<T> {
    const left = (this.left = new AbortController());
    try {
      return await action();
    } finally {
      left.abort();
      if (this.left === left) this.left = new AbortController();
    }
  }

  private acknowledgedOn(thread: string): Acknowledged {
    const acknowledged = this.acknowledged.get(thread) ?? new Acknowledged();
    this.acknowledged.set(thread, acknowledged);
    return acknowledged;
  }

  private watchSignal(): AbortSignal {
    return AbortSignal.any([this.abortController.signal, this.left.signal]);
  }

  private send(url: string, body: object, { signal }: CommandOptions, isEarly?: (problem: Problem) => boolean): Promise<Accepted> {
    return send(this.transport, { url, headers: this.headers, body, signal, isEarly });
  }
}
