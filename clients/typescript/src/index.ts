export { PerdureAgent } from "./agent.js";
export type { ConnectParameters, RunParameters } from "./agent.js";
export type { Retry, RetryOptions } from "./backoff.js";
export { PerdureClient } from "./client.js";
export type { Approval, ApprovalFilter, ApprovalPage, Vote } from "./client.js";
export type { Accepted, CommandOptions, ContentPart, Decision, Proposal, RecordedDecision, ToolResult } from "./commands.js";
export type { PerdureAgentConfig, PerdureConfig } from "./config.js";
export { AnsweredError, ConnectionLostError, ProblemError } from "./problem.js";
export type { Problem } from "./problem.js";
