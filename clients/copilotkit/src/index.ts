export { perdureAgents } from "./agents.js";
export type { AgentsOptions } from "./agents.js";
export type { PerdureOptions } from "./options.js";
export { PerdureAgentRunner } from "./runner.js";
