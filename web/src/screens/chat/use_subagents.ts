import type { PerdureClient, Trace } from "@perdure/client";
import type { Subagent, ThreadHook } from "@perdure/client/react";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useClient } from "../../session";

/**
 * Returns the subagents and branches of a thread. A page that has read a branch in a snapshot has only its messages: the
 * traces of the runs tell its name, its state and its parent.
 */
export function useSubagents({ threadId, subagents }: ThreadHook<unknown>): readonly Subagent[] {
  const client = useClient();
  const unnamed = subagents.filter(({ name }) => name === "").map(({ id }) => id);
  const { data: traced } = useQuery({
    queryKey: ["branches", threadId, ...unnamed],
    queryFn: ({ signal }) => branchesOf(client, threadId, unnamed, signal),
    enabled: unnamed.length > 0,
    staleTime: Infinity,
  });
  return useMemo(() => {
    const byID = new Map(subagents.map((subagent) => [subagent.id, subagent]));
    for (const branch of traced ?? []) if (!byID.get(branch.id)?.name) byID.set(branch.id, branch);
    return [...byID.values()].map((subagent) => (subagent.name === "" ? { ...subagent, name: "branch" } : subagent));
  }, [subagents, traced]);
}

const mostRuns = 20;

// Returns these branches and those around them, from the traces of the last runs.
async function branchesOf(client: PerdureClient, threadId: string, ids: readonly string[], signal: AbortSignal): Promise<Subagent[]> {
  const found = new Map<string, Subagent>();
  const { items } = await client.runs(threadId, { limit: mostRuns }, { signal });
  for (const runId of new Set(items.map((run) => run.runId))) {
    if (ids.every((id) => found.has(id))) break;
    const spans = new Map((await client.trace(threadId, runId, {}, { signal })).spans.map((span) => [span.id, span]));
    for (const span of spans.values()) {
      if (!ids.includes(span.subagentRunId ?? "")) continue;
      for (let branch: Span | undefined = span; branch; branch = outer(spans, branch)) found.set(branch.subagentRunId!, subagentOf(branch, outer(spans, branch)));
    }
  }
  return [...found.values()];
}

type Span = Trace["spans"][number];

// Returns the branch in which a branch is.
function outer(spans: ReadonlyMap<string, Span>, { parentId }: Span): Span | undefined {
  const parent = parentId === undefined ? undefined : spans.get(parentId);
  return parent === undefined || parent.subagentRunId !== undefined ? parent : outer(spans, parent);
}

const states: Record<string, Subagent["status"]> = { running: "running", waiting: "suspended", failed: "failed", cancelled: "failed" };

function subagentOf({ subagentRunId, name, status, error }: Span, parent: Span | undefined): Subagent {
  return { id: subagentRunId!, name, status: states[status] ?? "finished", ...(parent && { parentId: parent.subagentRunId }), ...(error && { error: { code: error.code, message: error.message ?? error.code } }) };
}
