/**
 * The client of Perdure: agents, and the whole API.
 *
 * Streams use WebSockets in browsers, and all tabs share them (SharedExchange). If a proxy refuses WebSockets, the tab with
 * the sockets reads all streams over HTTP (SocketPool). A browser opens six connections to a host, so a response for each
 * thread would block a page with many tabs. Polling would delay tokens. Therefore `POST /v1/streams` carries the streams of
 * many threads in one response, and the frames are those of a WebSocket (StreamRequests).
 *
 * @packageDocumentation
 */
export { PerdureAgent } from "./agent.js";
export type { ConnectParameters, RunParameters } from "./agent.js";
export type { ConnectionListeners, Retry, RetryOptions } from "./backoff.js";
export { PerdureClient } from "./client.js";
export type {
  ApprovalEvent,
  ApprovalFilter,
  ApprovalPage,
  BatchDecision,
  CloudEvent,
  EventOptions,
  PerdureClientConfig,
  RunInput,
  StreamEvent,
  UploadOptions,
} from "./client.js";
export { textOf } from "./content.js";
export type { TransportName } from "./connection.js";
export type { Accepted, CommandOptions, ContentPart, Decision, Remember, ToolResult } from "./commands.js";
export type { Decided, PerdureAgentConfig, PerdureConfig, Retraction } from "./config.js";
export { AnsweredError, ConnectionLostError, ProblemError } from "./problem.js";
export type { Problem } from "./problem.js";
export { awaitedBy } from "./interrupts.js";
export type { AwaitedEnd } from "./interrupts.js";
export { Listing } from "./listing.js";
export type { Page } from "./listing.js";
export { RunError, WaitingError } from "./result.js";
export type { WaitingInterrupt } from "./result.js";
export type {
  Agent,
  Approval,
  BatchResult,
  EventReceipt,
  Tally,
  RecordedDecision,
  Revision,
  Run,
  Schedule,
  StoredFile,
  ScheduleSpec,
  Share,
  Span,
  Superseded,
  System,
  Thread,
  ThreadEntry,
  ForkPoint,
  Trace,
  TraceEvent,
  UsageItem,
  UsageReport,
  Validation,
  Vote,
  Wait,
} from "./schemas.js";
export type { WebSocketFactory } from "./socket_pool.js";
export type { TokenSource } from "./transport.js";
