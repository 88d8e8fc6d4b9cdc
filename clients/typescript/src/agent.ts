import {
  type AgentSubscriber,
  HttpAgent,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
  runHttpRequest,
  transformHttpEventStream,
} from "@ag-ui/client";
import { type Accepted, type CommandOptions, type Decision, send, type ToolResult } from "./commands.js";
import { baseUrlOf, type PerdureAgentConfig, transportOf, urlOf } from "./config.js";
import type { Problem } from "./problem.js";
import { approvalURL, runURL, threadURL } from "./routes.js";
import { runFetch, threadStream } from "./streams.js";
import type { Transport } from "./transport.js";

export interface RunParameters extends RunAgentParameters {
  abortController?: AbortController;
}

export interface ConnectParameters extends RunParameters {
  /** Go on when no run is active. Default: as configured. */
  follow?: boolean;
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
  private left = new AbortController();
  private watched: { thread: string; run: string } | undefined;

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
    const { baseUrl, transport, follows, following, watched } = this;
    return Object.assign(clone, { baseUrl, transport, follows, following, watched, joining: false, left: new AbortController() });
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
    const { follow = this.follows, abortController = new AbortController(), ...rest } = parameters;
    this.abortController = abortController; // one that was aborted is of no use any more
    this.following = follow;
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
  sendToolResult(result: ToolResult, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(threadURL(this.baseUrl, this.threadId) + "/tool-results", result, options);
  }

  /**
   * Decides an approval of this thread. Another decision was made before: AnsweredError, with that
   * decision; it has expired: ProblemError with status 410.
   */
  decide(approvalId: string, decision: Decision, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(approvalURL(this.baseUrl, this.threadId, approvalId), decision, options);
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
    return input;
  }

  protected override async onInitialize(input: RunAgentInput, subscribers: AgentSubscriber[]): Promise<void> {
    if (!this.joining) return super.onInitialize(input, subscribers);
    const { pendingInterrupts } = this;
    this.pendingInterrupts = []; // who only watches has to answer none
    try {
      await super.onInitialize(input, subscribers);
    } finally {
      this.pendingInterrupts = pendingInterrupts;
    }
  }

  protected override requestInit(input: RunAgentInput): RequestInit {
    return { ...super.requestInit(input), signal: this.watchSignal() };
  }

  protected override connect(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    const response = () =>
      threadStream(this.transport, {
        base: this.baseUrl,
        thread: input.threadId,
        protocolVersion: (input as { protocolVersion?: string }).protocolVersion,
        follow: this.following,
        headers: this.headers,
        signal: this.watchSignal(),
        onRun: (run) => (this.watched = { thread: input.threadId, run }),
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

  private watchSignal(): AbortSignal {
    return AbortSignal.any([this.abortController.signal, this.left.signal]);
  }

  private send(url: string, body: object, { signal }: CommandOptions, isEarly?: (problem: Problem) => boolean): Promise<Accepted> {
    return send(this.transport, { url, headers: this.headers, body, signal, isEarly });
  }
}
