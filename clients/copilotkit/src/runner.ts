import { setTimeout as pause } from "node:timers/promises";
import { type AgentSubscriber, type BaseEvent, EventType, type RunAgentInput } from "@ag-ui/client";
import {
  AgentRunner,
  type AgentRunnerConnectRequest,
  type AgentRunnerIsRunningRequest,
  type AgentRunnerRunRequest,
  type AgentRunnerStopRequest,
} from "@copilotkit/runtime/v2";
import { PerdureAgent } from "@perdure/client";
import { Observable } from "rxjs";
import { headersOf, type PerdureOptions, request } from "./options.js";

/** How long stop waits for a run whose input has not reached Perdure yet, and the pause between two attempts, in milliseconds. */
const arrival = { atMost: 5_000, pause: 100 };

/**
 * A runner for CopilotRuntime without threads of its own: Perdure stores the threads and executes the runs. Therefore a
 * runtime process may end at any time, and several processes may serve the same threads.
 */
export class PerdureAgentRunner extends AgentRunner {
  private readonly options: PerdureOptions;

  constructor(options: PerdureOptions) {
    super();
    this.options = options;
  }

  /**
   * Starts a run and streams its events. While another run of the thread is active, the run waits for its end, unless
   * `forwardedProps.perdure.onBusy` says otherwise. A subscriber that leaves does not cancel the run. Throws a TypeError
   * if the agent is not a PerdureAgent.
   */
  override run({ agent, input }: AgentRunnerRunRequest): Observable<BaseEvent> {
    if (!(agent instanceof PerdureAgent)) throw new TypeError(`agent ${agent.agentId} must be a PerdureAgent: use perdureAgents`);
    return eventsOf(agent, input.threadId, (subscriber) => agent.runAgent(queued(input), subscriber));
  }

  /** Streams the thread: its messages and its state, and then its active run to the end. */
  override connect({ threadId, agentId = "any", headers }: AgentRunnerConnectRequest): Observable<BaseEvent> {
    const agent = new PerdureAgent({ ...this.options, agent: agentId, threadId, headers: headers ?? headersOf(this.options) });
    return eventsOf(agent, threadId, (subscriber) => agent.connectAgent({ follow: false }, subscriber));
  }

  override async isRunning({ threadId }: AgentRunnerIsRunningRequest): Promise<boolean> {
    return (await this.activeRun(threadId)) !== undefined;
  }

  /**
   * Cancels a run: the one with the ID `runId`, or without it the active run of the thread. Resolves when the request is
   * durable, with false if there is no such run.
   */
  override async stop({ threadId, runId }: AgentRunnerStopRequest): Promise<boolean> {
    const run = runId ?? (await this.activeRun(threadId));
    if (run === undefined) return false;
    const path = `${threadPath(threadId)}/runs/${encodeURIComponent(run)}/cancel`;
    for (const end = Date.now() + arrival.atMost; Date.now() < end; await pause(arrival.pause)) {
      if (await request(this.options, path, { reason: "stopped in CopilotKit" })) return true;
    }
    return false;
  }

  private async activeRun(threadId: string): Promise<string | undefined> {
    const response = await request(this.options, threadPath(threadId));
    const thread = (await response?.json()) as { status: string; runId?: string } | undefined;
    return thread?.status === "running" || thread?.status === "paused" ? thread.runId : undefined;
  }
}

const threadPath = (threadId: string) => `/v1/threads/${encodeURIComponent(threadId)}`;

// A message that follows a Stop or a reload of the page must not be refused because the previous run has not ended yet.
function queued(input: RunAgentInput): RunAgentInput {
  const props = (input.forwardedProps ?? {}) as { perdure?: object };
  return { ...input, forwardedProps: { ...props, perdure: { onBusy: "enqueue", ...props.perdure } } };
}

type Read = (subscriber: AgentSubscriber) => Promise<unknown>;

/**
 * Returns the events that an agent reads, from the subscription on. An error of the agent is a RUN_ERROR, because the
 * runtime shows the error of an Observable to no page. Without a subscriber the agent stops reading, but not before the
 * first event: until then the input may not have reached Perdure.
 */
function eventsOf(agent: PerdureAgent, threadId: string, read: Read): Observable<BaseEvent> {
  return new Observable((observer) => {
    let begun = false;
    let ended = false; // whether a run has ended and no later one has begun
    let runId = "";
    const onEvent: AgentSubscriber["onEvent"] = ({ event }) => {
      begun = true;
      if (event.type === EventType.RUN_STARTED) runId = (event as BaseEvent & { runId: string }).runId;
      ended = event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR;
      if (observer.closed) agent.abortRun();
      else observer.next(isCancelled(event) ? ({ type: EventType.RUN_FINISHED, threadId, runId } as BaseEvent) : event);
    };
    read({ onEvent }).then(
      () => observer.complete(),
      (error: unknown) => {
        if (!ended) observer.next(runError(error));
        observer.complete();
      },
    );
    return () => {
      if (begun) agent.abortRun();
    };
  });
}

// As its own runner does, CopilotKit expects a stopped run to finish: a page shows every RUN_ERROR as an error.
const isCancelled = (event: BaseEvent) =>
  event.type === EventType.RUN_ERROR && (event as BaseEvent & { code?: string }).code === "cancelled";

// The error of an HttpAgent has the status and the body of a response that refused the run.
function runError(error: unknown): BaseEvent {
  const { message, status, payload } = error as Error & { status?: number; payload?: unknown };
  const { code, detail } = problemOf(payload);
  const fallback = status === undefined ? "connection_lost" : `http_${status}`;
  return { type: EventType.RUN_ERROR, message: detail ?? message, code: code ?? fallback } as BaseEvent;
}

// Perdure refuses with a problem document (RFC 9457), a proxy with any text.
function problemOf(payload: unknown): { code?: string; detail?: string } {
  if (typeof payload !== "string") return payload ?? {};
  try {
    return (JSON.parse(payload) as object | null) ?? {};
  } catch {
    return {};
  }
}
