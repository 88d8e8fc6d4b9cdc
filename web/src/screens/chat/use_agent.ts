import type { Agent } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

/** What the page uses of the capabilities of an agent. */
export interface Capabilities {
  tools?: { clientProvided?: boolean };
  humanInTheLoop?: { approvals?: boolean };
}

/** An agent, with its capabilities. */
export type AgentDetails = Omit<Agent, "capabilities"> & { capabilities: Capabilities };

/** Returns an agent, or undefined until it is loaded. */
export function useAgent(name: string): AgentDetails | undefined {
  const client = useClient();
  const { data } = useQuery({ queryKey: ["agent", name], queryFn: ({ signal }) => client.agent(name, {}, { signal }), staleTime: 60_000 });
  return data as AgentDetails | undefined;
}
