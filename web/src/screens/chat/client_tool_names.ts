import type { AgentDetails } from "./use_agent";

const prefix = "client:";

/** Returns the names of the client tools that an agent takes ("*": any), or undefined if it takes none. */
export function clientToolsOf(agent: AgentDetails | undefined): readonly string[] | undefined {
  if (!agent?.capabilities.tools?.clientProvided) return undefined;
  return (agent.tools ?? []).filter((tool) => tool.startsWith(prefix)).map((tool) => tool.slice(prefix.length));
}
