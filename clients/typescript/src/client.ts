import type { Message, RunAgentInput } from "@ag-ui/client";
import type { ConnectionListeners } from "./backoff.js";
import { type Accepted, type Command, type CommandOptions, type Decision, request, send, type ToolResult } from "./commands.js";
import { type PerdureConfig, transportOf, trimmed } from "./config.js";
import { newID } from "./identifier.js";
import { Listing, type Page } from "./listing.js";
import { type Problem, ProblemError } from "./problem.js";
import { resultOf } from "./result.js";
import { resumableFrames, type Source } from "./resumable_stream.js";
import { partSize, ResumableUpload } from "./resumable_upload.js";
import { agentURL, approvalURL, fileURL, runsURL, runURL, scheduleURL, threadURL, withQuery } from "./routes.js";
import type * as schemas from "./schemas.js";
import type { AnswerOf, operations, QueryOf } from "./schemas.js";
import type { Frame } from "./sse_frames.js";
import { openRun, threadSource } from "./streams.js";
import { type ThreadCommand, ThreadCommands } from "./thread_commands.js";
import { traceEvents } from "./trace_stream.js";
import { changeListener, type Transport } from "./transport.js";

/** Options of a PerdureClient. */
export interface PerdureClientConfig extends PerdureConfig {
  /** The base URL of the server's routes, without `/v1`. */
  baseUrl: string;
  /** Headers of every HTTP request. */
  headers?: Record<string, string>;
}

/** The filter of a list of approvals, and the size of its pages. */
export type ApprovalFilter = Filter<"listApprovals">;

type Filter<Name extends keyof operations> = { [Key in keyof QueryOf<Name>]: QueryOf<Name>[Key] | undefined };

/** A page of approvals. `eventsCursor` is the `after` of `approvalEvents` that continues the page. */
export type ApprovalPage = AnswerOf<"listApprovals">;

/** An event of a stream, and the cursor after it. The events at the beginning of a join have no cursor. */
export interface StreamEvent {
  cursor?: string;
  event: { type: string; [member: string]: unknown };
}

/** A change of an approval. `approval` is the approval after the change. */
export interface ApprovalEvent {
  /** What has happened. After `decided` and `expired` the approval is closed. */
  type: "opened" | "voted" | "reminded" | "escalated" | "decided" | "expired";
  /** The time, in the form of RFC 3339. */
  at: string;
  approval: schemas.Approval;
}

/** Where a stream of a thread begins, and whether it continues with later runs. */
export interface EventOptions extends CommandOptions {
  /** Only the events of this run. Without it: of the thread. */
  runId?: string;
  /** The cursor of the last event that is known. */
  after?: string;
  /** With `runId`: begin with snapshots of the messages and the state. */
  join?: boolean;
  /** Without `runId`: whether to continue with later runs. Default true. */
  follow?: boolean;
  /** The cursor of an acknowledgement: the stream shows its effect. */
  waitFor?: string;
}

/** Options of an upload. An aborted upload is deleted in the background, or by the server after 24 hours. */
export interface UploadOptions extends CommandOptions {
  /** The name of the file. */
  name?: string;
  /** Called with the bytes that the server has, after each part of a file of more than 4 MiB and at the end. */
  onProgress?: (sent: number, total: number) => void;
}

/** One decision of a batch. */
export type BatchDecision = operations["decideBatch"]["requestBody"]["content"]["application/json"]["decisions"][number];

/** An event of another system, with the attributes of CloudEvents 1.0. */
export interface CloudEvent {
  /** With the source, it identifies the event: a further one is a duplicate. Default: a new one. */
  id?: string;
  /** Where the event happened, a URI reference such as `/shop`. */
  source: string;
  /** What happened, such as `payment.received`. Runs wait for this name. */
  type: string;
  /** What it happened to. */
  subject?: string;
  /** When it happened, in the form of RFC 3339. */
  time?: string;
  /** Any JSON. Runs wait for values in it. */
  data?: unknown;
}

/** The input of a run. Members that are absent are empty. */
export type RunInput = Partial<RunAgentInput> & { threadId: string };

/**
 * A client for all threads, approvals, waits, agents and schedules of a server. Every request is repeated until the server
 * answers. A request rejects with a ProblemError if the server refuses it, with an AnsweredError if another answer or
 * decision is recorded, with a ConnectionLostError if all attempts fail, and with the reason of an aborted signal. Lists
 * are pages when they are awaited, and all items when they are iterated.
 */
export class PerdureClient {
  /** The base URL of the routes, without `/v1` and without slashes at its end. */
  readonly baseUrl: string;
  /** The options, for agents that use the same server. */
  readonly config: PerdureClientConfig;
  private readonly transport: Transport;
  private readonly commands: ThreadCommands;

  /** Throws a RangeError or a TypeError that names an invalid option. */
  constructor(config: PerdureClientConfig) {
    // Agents with this configuration share the listener, so that it is called once for a change.
    const { onTransportChanged } = config;
    this.config = onTransportChanged ? { ...config, onTransportChanged: changeListener(onTransportChanged) } : config;
    this.baseUrl = trimmed(config.baseUrl);
    this.transport = transportOf(this.config, this.baseUrl);
    this.commands = new ThreadCommands(this.baseUrl);
  }

  // Threads

  /** Lists the threads, last updated first. */
  threads(filter: Filter<"listThreads"> = {}, options: CommandOptions = {}): Listing<schemas.ThreadEntry> {
    return this.list("/v1/threads", filter, options);
  }

  /** Returns the summary of a thread. */
  thread(threadId: string, query: Filter<"showThread"> = {}, options: CommandOptions = {}): Promise<schemas.Thread> {
    return this.get(withQuery(threadURL(this.baseUrl, threadId), query), options);
  }

  /** Deletes a thread and everything that the server stores about it. The active run is cancelled. */
  async deleteThread(threadId: string, options: CommandOptions = {}): Promise<void> {
    await this.delete(threadURL(this.baseUrl, threadId), "unknown_thread", options);
  }

  /** Returns the owner of a thread, and with whom the thread is shared. */
  shares(threadId: string, options: CommandOptions = {}): Promise<AnswerOf<"showShares">> {
    return this.get(`${threadURL(this.baseUrl, threadId)}/shares`, options);
  }

  /** Replaces the shares of a thread. An empty list makes the thread private. */
  share(threadId: string, shares: schemas.Share[], options: CommandOptions = {}): Promise<AnswerOf<"putShares">> {
    return this.request({ method: "PUT", url: `${threadURL(this.baseUrl, threadId)}/shares`, body: { shares } }, options);
  }

  /** Gives a thread a title. An empty title restores the one by a model, or that of the first message. */
  setTitle(threadId: string, title: string, options: CommandOptions = {}): Promise<AnswerOf<"putTitle">> {
    return this.request({ method: "PUT", url: `${threadURL(this.baseUrl, threadId)}/title`, body: { title } }, options);
  }

  /** Replaces the metadata of a thread. */
  setMetadata(threadId: string, metadata: schemas.ThreadMetadata, options: CommandOptions = {}): Promise<AnswerOf<"putMetadata">> {
    return this.request({ method: "PUT", url: `${threadURL(this.baseUrl, threadId)}/metadata`, body: { metadata } }, options);
  }

  /** Lists the audit log, oldest first, or newest first with `order`. For administrators. */
  auditLog(filter: Filter<"listAuditEntries"> = {}, options: CommandOptions = {}): Listing<schemas.AuditEntry> {
    return this.list("/v1/audit", filter, options);
  }

  /** Lists the messages of a thread from the beginning. */
  messages(threadId: string, query: Filter<"showMessages"> = {}, options: CommandOptions = {}): Listing<Message> {
    return this.list(`${threadPath(threadId)}/messages`, query, options);
  }

  /** Returns the state of a thread. To change it, start a run with a `state`. */
  async state<State = unknown>(threadId: string, query: Filter<"showState"> = {}, options: CommandOptions = {}): Promise<State> {
    const { state } = await this.get<{ state: State }>(withQuery(`${threadURL(this.baseUrl, threadId)}/state`, query), options);
    return state;
  }

  /** Lists the runs of a thread, newest first. */
  runs(threadId: string, query: Filter<"listRuns"> = {}, options: CommandOptions = {}): Listing<schemas.Run> {
    return this.list(`${threadPath(threadId)}/runs`, query, options);
  }

  /** Returns a run of a thread, with its result. */
  run(threadId: string, runId: string, query: Filter<"showRun"> = {}, options: CommandOptions = {}): Promise<schemas.Run> {
    return this.get(withQuery(runURL(this.baseUrl, threadId, runId), query), options);
  }

  /** Lists the inputs that removed messages from the conversation by an edit, a regeneration or a replacement, newest first. */
  superseded(threadId: string, query: Filter<"listSuperseded"> = {}, options: CommandOptions = {}): Listing<schemas.Superseded> {
    return this.list(`${threadPath(threadId)}/superseded`, query, options);
  }

  /** Lists the messages that the input of a run removed. */
  supersededMessages(threadId: string, runId: string, query: Filter<"showSuperseded"> = {}, options: CommandOptions = {}): Listing<Message> {
    return this.list(`${threadPath(threadId)}/superseded/${encodeURIComponent(runId)}`, query, options);
  }

  /**
   * Creates a thread with the messages and the state that this thread had at the end of the run, or with `at` after a step
   * of it (see forkPoints). Returns its ID. newThreadId is its ID; by default the client chooses one.
   */
  async fork(threadId: string, runId: string, newThreadId: string = newID(), options: CommandOptions & { at?: string } = {}): Promise<string> {
    const { at, ...rest } = options;
    await this.request({ url: runURL(this.baseUrl, threadId, runId) + "/fork", body: { threadId: newThreadId, at } }, rest);
    return newThreadId;
  }

  /** Reads where the run can be forked, in the order of the run. */
  async forkPoints(threadId: string, runId: string, options: CommandOptions = {}): Promise<schemas.ForkPoint[]> {
    const { items } = await this.request<{ items: schemas.ForkPoint[] }>({ url: runURL(this.baseUrl, threadId, runId) + "/forkpoints" }, options);
    return items;
  }

  // Runs

  /**
   * Starts a run and returns its ID as soon as the run is durable, without reading its events. If it becomes steering of an
   * active run, returns the ID of that run. Read the events with `events` or with a store. `revision` names a published
   * revision or a draft to run instead of the current one, for those who may publish the agent.
   */
  startRun(agent: string, input: RunInput, options: CommandOptions & { revision?: string | undefined; waitFor?: string | undefined } = {}): Promise<string> {
    const complete = { runId: newID(), messages: [], tools: [], context: [], forwardedProps: {}, protocolVersion, ...input };
    const { headers = {} } = this.config;
    return openRun(this.transport, { url: runsURL(this.baseUrl, agent), agent, input: complete, headers, ...options });
  }

  /**
   * Runs an agent that has an output, and returns the result of the run. A string is the message of a user. IDs that the
   * input lacks are new ones. Rejects with a RunError if the run fails, is cancelled or has no result (`no_result`), and
   * with a WaitingError if it waits for a person, a time, an event or a tool of the client. An aborted signal does not
   * cancel the run.
   */
  async call<Result = unknown>(agent: string, input: string | Partial<RunInput>, options: CommandOptions = {}): Promise<Result> {
    const given: Partial<RunInput> = typeof input === "string" ? { messages: [{ id: newID(), role: "user", content: input }] } : input;
    const threadId = given.threadId ?? newID();
    const runId = await this.startRun(agent, { ...given, threadId }, options);
    let last: StreamEvent["event"] | undefined;
    for await (const { event } of this.events(threadId, { runId, ...options })) last = event;
    return resultOf(threadId, runId, last) as Result;
  }

  /** Yields the events of a run or a thread. It reconnects and continues after the last event. */
  async *events(threadId: string, { signal, ...view }: EventOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const { headers = {} } = this.config;
    const source = threadSource({ base: this.baseUrl, threadId, protocolVersion, headers, ...view });
    for await (const { id, text } of this.stream(source, signal)) {
      yield { ...(id !== undefined && { cursor: id }), event: dataOf(text) as StreamEvent["event"] };
    }
  }

  /** Lists the events of a run or a thread that the server has, without waiting for later ones. */
  loggedEvents(threadId: string, query: { runId?: string; limit?: number; after?: string; timestamps?: boolean } = {}, options: CommandOptions = {}): Listing<StreamEvent> {
    const { runId, after: start, ...rest } = query;
    const url = runId === undefined ? threadURL(this.baseUrl, threadId) : runURL(this.baseUrl, threadId, runId);
    const page = (after: string | undefined) => this.get<Page<StreamEvent>>(withQuery(`${url}/events`, { ...rest, after }), options);
    return new Listing(page, start);
  }

  /** Returns the trace of a run as of now: its spans with all attempts. */
  trace(threadId: string, runId: string, query: Filter<"runTrace"> = {}, options: CommandOptions = {}): Promise<schemas.Trace> {
    return this.get(withQuery(`${runURL(this.baseUrl, threadId, runId)}/trace`, query), options);
  }

  /**
   * Yields the trace of a run, and then the spans that begin or change, until the run ends. It reconnects, and then yields
   * the whole trace again. The listeners learn of the connection of this stream only.
   */
  traceEvents(threadId: string, runId: string, { signal, ...listeners }: CommandOptions & ConnectionListeners = {}): AsyncGenerator<schemas.TraceEvent, void, undefined> {
    const { headers = {} } = this.config;
    return traceEvents(this.transport, `${runURL(this.baseUrl, threadId, runId)}/trace`, headers, signal ?? new AbortController().signal, listeners);
  }

  /** Adds a user message to the active run. Without an active run it rejects with the code `not_active`. */
  steer(threadId: string, message: Message, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(this.commands.steer(threadId, message), options);
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

  // Files

  /**
   * Uploads a file. A message refers to it by a content part with the `url` as its source. The server deletes it after 24
   * hours unless a message does. `name` is by default that of a File. A file of more than 4 MiB is sent in parts: after a
   * failure, its upload continues with the first byte that the server does not have.
   */
  async uploadFile(file: Blob & { name?: string }, options: UploadOptions = {}): Promise<schemas.StoredFile> {
    const { name = file.name, onProgress, ...rest } = options;
    if (file.size > partSize) {
      const { headers = {} } = this.config;
      const id = await new ResumableUpload(this.transport, { baseUrl: this.baseUrl, headers, file, name, onProgress, signal: rest.signal }).run();
      if (id !== undefined) return this.file(id, rest);
    }
    const stored = await this.request<schemas.StoredFile>({ url: withQuery(`${this.baseUrl}/v1/files`, { name }), body: file }, rest);
    onProgress?.(file.size, file.size);
    return stored;
  }

  /** Returns the bytes of a file, by its ID. */
  openFile(id: string, options: CommandOptions = {}): Promise<Blob> {
    return this.request({ url: fileURL(this.baseUrl, id), accept: "*/*" }, options);
  }

  /** Describes a file. */
  file(id: string, options: CommandOptions = {}): Promise<schemas.StoredFile> {
    return this.get(`${fileURL(this.baseUrl, id)}/metadata`, options);
  }

  /** Lists the files that the caller has uploaded, newest first. */
  files(filter: Filter<"listFiles"> = {}, options: CommandOptions = {}): Listing<schemas.StoredFile> {
    return this.list("/v1/files", filter, options);
  }

  /** Deletes a file. Messages that refer to it keep its URL. */
  async deleteFile(id: string, options: CommandOptions = {}): Promise<void> {
    await this.delete(fileURL(this.baseUrl, id), "unknown_file", options);
  }

  // Approvals

  /** Lists the approvals of all threads: open ones, oldest first, or with `status: "decided"` decided ones, newest first. */
  approvals(filter: ApprovalFilter = {}, options: CommandOptions = {}): Listing<schemas.Approval, ApprovalPage> {
    return this.list("/v1/approvals", filter, options);
  }

  /**
   * Yields the changes of approvals. `after` is the `eventsCursor` of a page, or the cursor of the last change; without it,
   * the stream begins with the next change. It reconnects and continues after the last change.
   */
  async *approvalEvents(
    filter: Filter<"approvalEvents"> = {},
    { signal }: CommandOptions = {},
  ): AsyncGenerator<ApprovalEvent & { cursor: string }, void, undefined> {
    const { after, ...query } = filter;
    const url = withQuery(`${this.baseUrl}/v1/approvals/events`, query);
    const { headers = {} } = this.config;
    const source: Source = {
      thread: "",
      follow: true,
      call: (cursor = after) => ({
        url: withQuery(url, { after: cursor }),
        init: { headers: { ...headers, Accept: "text/event-stream" } },
        frame: { type: "approvals", query: new URL(url, "http://x").search, after: cursor },
      }),
    };
    for await (const { id, text } of this.stream(source, signal)) yield { ...(dataOf(text) as ApprovalEvent), cursor: id! };
  }

  /** Lists all approvals of a thread, oldest first, with their events and decisions. */
  audit(threadId: string, query: Filter<"showAudit"> = {}, options: CommandOptions = {}): Listing<schemas.Approval> {
    return this.list(`${threadPath(threadId)}/approvals`, query, options);
  }

  /** Decides an approval or answers a question: see PerdureAgent.decide. */
  decide(threadId: string, approvalId: string, decision: Decision, options: CommandOptions = {}): Promise<Accepted> {
    return this.send(this.commands.decide(threadId, approvalId, decision), options);
  }

  /** Makes up to 100 decisions. Returns the result of each, in the same order. */
  async decideBatch(decisions: BatchDecision[], options: CommandOptions = {}): Promise<schemas.BatchResult[]> {
    const { items } = await this.request<{ items: schemas.BatchResult[] }>({ url: `${this.baseUrl}/v1/approvals/batch`, body: { decisions } }, options);
    return items;
  }

  /** Creates a link with which one person makes one decision without signing in. */
  createLink(
    threadId: string,
    approvalId: string,
    link: operations["makeLink"]["requestBody"]["content"]["application/json"],
    options: CommandOptions = {},
  ): Promise<{ url: string; expiresAt: string }> {
    return this.request({ url: approvalURL(this.baseUrl, threadId, approvalId) + "/links", body: link }, options);
  }

  // Waits and events

  /** Lists the runs that wait for a time or an event, those whose wait ends first at the beginning. */
  waits(filter: Filter<"listWaits"> = {}, options: CommandOptions = {}): Listing<schemas.Wait> {
    return this.list("/v1/waits", filter, options);
  }

  /** Continues a run before its wait ends. If it waits for an event, it receives one with these data. */
  continueWait(threadId: string, waitId: string, data: unknown = null, options: CommandOptions = {}): Promise<Accepted> {
    return this.decide(threadId, waitId, { decision: "answer", content: { data } }, options);
  }

  /** Ends a wait without what it waits for. A step of a pipeline fails; a model receives the reason. */
  cancelWait(threadId: string, waitId: string, reason?: string, options: CommandOptions = {}): Promise<Accepted> {
    return this.decide(threadId, waitId, { decision: "reject", ...(reason !== undefined && { reason }) }, options);
  }

  /** Sends an event to the runs that wait for it, now or in the next 72 hours. Needs the role `events`. */
  sendEvent(event: CloudEvent, options: CommandOptions = {}): Promise<schemas.EventReceipt> {
    const body = { specversion: "1.0", id: newID(), ...event };
    return this.request({ url: `${this.baseUrl}/v1/events`, body, contentType: "application/cloudevents+json" }, options);
  }

  // Agents

  /** Returns all agents. */
  async agents(options: CommandOptions = {}): Promise<schemas.Agent[]> {
    return (await this.agentList(options)).items;
  }

  /** Returns all agents, and why definitions of the server's directory are not published. */
  agentList(options: CommandOptions = {}): Promise<{ items: schemas.Agent[]; problems?: string[] }> {
    return this.get(`${this.baseUrl}/v1/agents`, options);
  }

  /** Returns an agent: its current revision, or another one or a draft. */
  agent(name: string, query: Filter<"showAgent"> = {}, options: CommandOptions = {}): Promise<schemas.Agent> {
    return this.get(withQuery(agentURL(this.baseUrl, name), query), options);
  }

  /**
   * Publishes a definition: YAML as a string, or an object. With `replaces`, only if that revision is current; `null` = only
   * if the agent does not exist. `note` says something about the change. The agent is for all tenants, or with the `scope`
   * `tenant` for that of the caller. Needs the role of administrators.
   */
  publishAgent(name: string, definition: string | object, options: CommandOptions & Filter<"putAgent"> & { replaces?: string | null } = {}): Promise<schemas.Agent> {
    const { replaces, note, scope, ...rest } = options;
    const precondition: Record<string, string> = replaces === null ? { "If-None-Match": "*" } : replaces === undefined ? {} : { "If-Match": `"${replaces}"` };
    return this.request({ method: "PUT", url: withQuery(agentURL(this.baseUrl, name), { note, scope }), body: definition, headers: precondition }, rest);
  }

  /** Stores a definition as a draft, which never becomes current: `startRun` runs it by its revision. */
  draftAgent(name: string, definition: string | object, query: Filter<"putDraft"> = {}, options: CommandOptions = {}): Promise<schemas.Agent> {
    return this.request({ url: withQuery(`${agentURL(this.baseUrl, name)}/drafts`, query), body: definition }, options);
  }

  /** Checks a definition as its publication would, and changes nothing: YAML as a string, or an object. */
  validateAgent(definition: string | object, query: Filter<"validateAgent"> = {}, options: CommandOptions = {}): Promise<schemas.Validation> {
    return this.request({ url: withQuery(`${this.baseUrl}/v1/agents/validate`, query), body: definition }, options);
  }

  /** Returns the JSON Schema of definitions of agents. */
  agentSchema(options: CommandOptions = {}): Promise<object> {
    return this.get(`${this.baseUrl}/v1/schemas/agent`, options);
  }

  /** Lists the published revisions of an agent, newest first. */
  revisions(name: string, query: Filter<"listRevisions"> = {}, options: CommandOptions = {}): Listing<schemas.Revision> {
    return this.list(`${agentURL("", name)}/revisions`, query, options);
  }

  /** Returns the definition of a revision with all defaults, as YAML. */
  definition(name: string, revision: string, options: CommandOptions = {}): Promise<string> {
    return this.request({ url: `${agentURL(this.baseUrl, name)}/revisions/${encodeURIComponent(revision)}`, accept: "application/yaml" }, options);
  }

  /** Returns a unified diff of the YAML of two revisions. Without `from`, of the revision and the one that it replaced. */
  revisionDiff(name: string, revision: string, from?: string, options: CommandOptions = {}): Promise<string> {
    const url = withQuery(`${agentURL(this.baseUrl, name)}/revisions/${encodeURIComponent(revision)}/diff`, { from });
    return this.request({ url, accept: "text/plain" }, options);
  }

  // System

  /** Returns workers, task queues, the log, and the results of the readiness checks. For administrators of the platform. */
  system(options: CommandOptions = {}): Promise<schemas.System> {
    return this.get(`${this.baseUrl}/v1/system`, options);
  }

  // Callers

  /** Returns the caller, as the server has authenticated it, and when its session ends if it has one. */
  caller(options: CommandOptions = {}): Promise<AnswerOf<"getSession">> {
    return this.get(`${this.baseUrl}/auth/session`, options);
  }

  // Usage

  /** Returns what the runs that ended in a period have used; without a filter, in the last 30 days by day. For administrators. */
  async usage(query: Filter<"showUsage"> = {}, options: CommandOptions = {}): Promise<schemas.UsageItem[]> {
    return (await this.usageReport(query, options)).items;
  }

  /** Like `usage`, with whether the caller may read the usage of all tenants. */
  usageReport(query: Filter<"showUsage"> = {}, options: CommandOptions = {}): Promise<schemas.UsageReport> {
    return this.get(withQuery(`${this.baseUrl}/v1/usage`, query), options);
  }

  /** Returns what the caller's tenant, or another one, has of its quotas, and its rates. */
  quotas(query: Filter<"showQuotas"> = {}, options: CommandOptions = {}): Promise<AnswerOf<"showQuotas">> {
    return this.get(withQuery(`${this.baseUrl}/v1/quotas`, query), options);
  }

  // Schedules

  /** Lists the schedules, without their inputs and firings. */
  schedules(query: Filter<"listSchedules"> = {}, options: CommandOptions = {}): Listing<schemas.Schedule> {
    return this.list("/v1/schedules", query, options);
  }

  /** Returns a schedule with its latest firings. */
  schedule(id: string, options: CommandOptions = {}): Promise<schemas.Schedule> {
    return this.get(scheduleURL(this.baseUrl, id), options);
  }

  /** Creates a schedule. Without an `id` in the specification, the client chooses one. */
  createSchedule(spec: schemas.ScheduleSpec, options: CommandOptions = {}): Promise<schemas.Schedule> {
    return this.request({ url: `${this.baseUrl}/v1/schedules`, body: { id: newID(), ...spec } }, options);
  }

  /** Replaces all members of a schedule. A paused schedule stays paused. */
  replaceSchedule(id: string, spec: schemas.ScheduleSpec, options: CommandOptions = {}): Promise<schemas.Schedule> {
    return this.request({ method: "PUT", url: scheduleURL(this.baseUrl, id), body: spec }, options);
  }

  /** Deletes a schedule. Active runs continue. */
  async deleteSchedule(id: string, options: CommandOptions = {}): Promise<void> {
    await this.delete(scheduleURL(this.baseUrl, id), "unknown_schedule", options);
  }

  /** Pauses a schedule. */
  async pauseSchedule(id: string, options: CommandOptions = {}): Promise<void> {
    await this.request({ url: scheduleURL(this.baseUrl, id) + "/pause", body: {} }, options);
  }

  /** Resumes a schedule. */
  async resumeSchedule(id: string, options: CommandOptions = {}): Promise<void> {
    await this.request({ url: scheduleURL(this.baseUrl, id) + "/resume", body: {} }, options);
  }

  /**
   * Fires a schedule now, even while it is paused. A second trigger would fire it again, so this request is not repeated:
   * if it rejects with a ConnectionLostError, the effect is unknown.
   */
  async triggerSchedule(id: string, body: { overlap?: schemas.Schemas["Overlap"] } = {}, options: CommandOptions = {}): Promise<void> {
    await this.request({ url: scheduleURL(this.baseUrl, id) + "/trigger", body, attempts: 0 }, options);
  }

  private list<Item, P extends Page<Item> = Page<Item>>(path: string, query: object & { cursor?: string | undefined }, options: CommandOptions): Listing<Item, P> {
    const { cursor: start, ...rest } = query;
    return new Listing((cursor) => this.get<P>(withQuery(this.baseUrl + path, { ...rest, cursor }), options), start);
  }

  private get<Answer>(url: string, options: CommandOptions): Promise<Answer> {
    return this.request({ url }, options);
  }

  // A deletion that is repeated may find nothing.
  private async delete(url: string, code: string, options: CommandOptions): Promise<void> {
    let isRepeated = false;
    const onAttempt = () => (isRepeated = true);
    const wasDeleted = ({ code: received }: Problem) => isRepeated && received === code;
    try {
      await this.request({ method: "DELETE", url, onRetry: onAttempt }, options);
    } catch (error) {
      if (!(error instanceof ProblemError && wasDeleted(error.problem))) throw error;
    }
  }

  private request<Answer>(
    { attempts, onRetry, headers, ...command }: Omit<Command, "headers"> & { attempts?: number; onRetry?: () => void; headers?: Record<string, string> },
    options: CommandOptions,
  ): Promise<Answer> {
    const { transport } = this;
    const own: Transport = {
      ...transport,
      ...(attempts !== undefined && { retry: { ...transport.retry, attempts } }),
      onRetry: (retry) => {
        onRetry?.();
        transport.onRetry?.(retry);
      },
    };
    return request(own, { ...command, headers: { ...this.config.headers, ...headers }, ...options });
  }

  private send(command: ThreadCommand, options: CommandOptions): Promise<Accepted> {
    return send(this.transport, { ...command, headers: this.config.headers ?? {}, ...options });
  }

  private stream(source: Source, signal: AbortSignal = new AbortController().signal): AsyncGenerator<Frame, void, undefined> {
    return resumableFrames(source, this.transport, signal);
  }
}

/** The AG-UI version whose events a client reads. */
const protocolVersion = "1.0";

const threadPath = (threadId: string) => threadURL("", threadId);

/** Returns the data of a frame. A frame can have several lines of data. */
function dataOf(text: string): unknown {
  const lines = text.split("\n").filter((line) => line.startsWith("data:"));
  return JSON.parse(lines.map((line) => line.slice("data:".length)).join("\n"));
}
