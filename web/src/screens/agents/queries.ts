import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

/** The agents that the caller may run. */
export function useAgents() {
  const client = useClient();
  return useQuery({ queryKey: ["agents"], queryFn: () => client.agents(), refetchInterval: 10_000 });
}

/** Why definitions of the server's directory are not published. */
export function useDirectoryProblems() {
  const client = useClient();
  return useQuery({ queryKey: ["agents of the directory"], queryFn: async () => (await client.agentList()).problems ?? [], refetchInterval: 10_000 });
}

/** An agent and its current revision. */
export function useAgent(name: string) {
  const client = useClient();
  return useQuery({ queryKey: ["agents", name], queryFn: () => client.agent(name), refetchInterval: 10_000 });
}

/** The publications of an agent, newest first. Only administrators may read them. */
export function useRevisions(name: string) {
  const client = useClient();
  return useQuery({ queryKey: ["agents", name, "revisions"], queryFn: async () => (await client.revisions(name, { limit: 100 })).items, refetchInterval: 10_000 });
}

/** The definition of a revision as YAML. It never changes. Only administrators may read it. */
export function useDefinition(name: string, revision: string | undefined) {
  const client = useClient();
  return useQuery({
    queryKey: ["agents", name, "definition", revision],
    queryFn: () => client.definition(name, revision!),
    enabled: revision !== undefined,
    staleTime: Infinity,
  });
}

/** The JSON schema of definitions. */
export function useDefinitionSchema() {
  const client = useClient();
  return useQuery({ queryKey: ["schema of agents"], queryFn: () => client.agentSchema(), staleTime: Infinity });
}

/** The first characters of a revision, which identify it for people. */
export const shortRevision = (revision: string) => revision.replace(/^tenant-/, "").slice(0, 8);
