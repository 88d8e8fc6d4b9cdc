export { PerdureAgent } from "./agent.js";
export type { CommandOptions, ConnectParameters, RunParameters } from "./agent.js";
export type { Retry, RetryOptions } from "./backoff.js";
export type { Accepted, ContentPart, Decision, ToolResult } from "./commands.js";
export type { PerdureAgentConfig } from "./config.js";
export { AnsweredError, ConnectionLostError, ProblemError } from "./problem.js";
export type { Problem } from "./problem.js";
