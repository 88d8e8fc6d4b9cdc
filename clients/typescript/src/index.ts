export { PerdureAgent } from "./agent.js";
export type { ConnectParameters, RunParameters } from "./agent.js";
export type { Retry, RetryOptions } from "./backoff.js";
export { PerdureClient } from "./client.js";
export type {
  ApprovalEvent,
  ApprovalFilter,
  ApprovalPage,
  BatchDecision,
  EventOptions,
  PerdureClientConfig,
  RunInput,
  StreamEvent,
} from "./client.js";
export type { Accepted, CommandOptions, ContentPart, Decision, ToolResult } from "./commands.js";
export type { Decided, PerdureAgentConfig, PerdureConfig, Retraction } from "./config.js";
export { AnsweredError, ConnectionLostError, ProblemError } from "./problem.js";
export type { Problem } from "./problem.js";
export { Listing } from "./listing.js";
export type { Page } from "./listing.js";
export type {
  Agent,
  Approval,
  BatchResult,
  Proposal,
  RecordedDecision,
  Revision,
  Run,
  Schedule,
  ScheduleSpec,
  Superseded,
  Thread,
  ThreadEntry,
  Vote,
} from "./schemas.js";
export type { WebSocketFactory } from "./socket_pool.js";
export type { TokenSource } from "./transport.js";
