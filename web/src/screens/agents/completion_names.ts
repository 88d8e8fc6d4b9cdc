import { useMemo } from "react";
import { definitionCompletion } from "./completion";
import { useAgents, useDefinitionSchema } from "./queries";

/** The completion of keys and names. Names come from the agents that the caller may run. */
export function useCompletion(name: string) {
  const { data: schema } = useDefinitionSchema();
  const { data: agents } = useAgents();
  return useMemo(() => {
    const all = agents ?? [];
    const tools = all.flatMap((agent) => agent.tools ?? []).filter((tool) => !/^(agent|handoff):/.test(tool));
    return definitionCompletion(schema, {
      tools: [...new Set(tools)].sort(),
      agents: all.map((agent) => agent.name).filter((other) => other !== name),
      models: [...new Set(all.map(({ model }) => model).filter((model) => model !== ""))].sort(),
    });
  }, [schema, agents, name]);
}
