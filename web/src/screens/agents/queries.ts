import { ProblemError } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { requestJSON, useClient } from "../../session";

/** The agents that the caller may run. */
export function useAgents() {
  const client = useClient();
  return useQuery({ queryKey: ["agents"], queryFn: () => client.agents(), refetchInterval: 10_000 });
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

/** The JSON schema of definitions; null = the server does not serve it. */
export function useDefinitionSchema() {
  return useQuery({
    queryKey: ["agents", "schema"],
    queryFn: () => requestJSON<Record<string, unknown>>("/v1/agents/schema").catch(ignoreMissing),
    staleTime: Infinity,
  });
}

/** Turns the problem of a route that this server does not have into null. */
export function ignoreMissing(error: unknown): null {
  if (error instanceof ProblemError && (error.status === 404 || error.status === 405)) return null;
  throw error;
}

/** The first characters of a revision, which identify it for people. */
export const shortRevision = (revision: string) => revision.replace(/^tenant-/, "").slice(0, 8);
