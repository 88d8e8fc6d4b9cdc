import { PerdureAgent } from "@perdure/client";
import type { AgentsFactory } from "@copilotkit/runtime/v2";
import { enterCaller, type PerdureOptions, request } from "./options.js";

/** Options of perdureAgents. */
export interface AgentsOptions extends PerdureOptions {
  /** The names of the agents. Default: all agents of Perdure, which each request to the runtime lists again. */
  agents?: string[];
}

/**
 * Returns the `agents` of a CopilotRuntime: one PerdureAgent for each agent, under its name. The runner of the runtime
 * must be a PerdureAgentRunner. Throws a RangeError if `agents` is an empty list.
 */
export function perdureAgents(options: AgentsOptions): AgentsFactory {
  const { agents: names, ...rest } = options;
  if (names?.length === 0) throw new RangeError("agents must have at least one name; leave it out for all agents of Perdure");
  return async ({ request }) => {
    enterCaller(request); // before the first await, so that it holds for the caller of this function
    const entries = names?.map((name): AgentEntry => ({ name })) ?? (await list(options));
    const agentOf = ({ name, description = "" }: AgentEntry) => new PerdureAgent({ ...rest, agent: name, agentId: name, description });
    return Object.fromEntries(entries.map((entry) => [entry.name, agentOf(entry)]));
  };
}

interface AgentEntry {
  name: string;
  description?: string;
}

async function list(options: PerdureOptions): Promise<AgentEntry[]> {
  const response = await request(options, "/v1/agents");
  if (response === undefined) throw new Error(`${options.baseUrl} has no route /v1/agents: set baseUrl to the base URL of Perdure`);
  const { items } = (await response.json()) as { items: AgentEntry[] };
  return items;
}
