import type { Run, Trace } from "@perdure/client";
import { useQueries } from "@tanstack/react-query";
import { useClient } from "../../session";
import { useRuns } from "./run_trail";

/** A run of a chain: each run continues the one before it, after a decision. */
export interface ChainedRun {
  trace: Trace;
  /** Such as "run 2", in the order of the thread's runs. */
  title: string;
}

// A pipeline with many approvals has as many runs.
const mostRuns = 20;
const refetchInterval = 3_000;

/** The chain of a run, the first run first, as far as it is loaded. The traces of other runs are read again while they change. */
export function useRunChain(trace: Trace): ChainedRun[] {
  const client = useClient();
  const { data: runs = [] } = useRuns(trace.threadId);
  const ids = chainOf(runs, trace);
  const traces = useQueries({
    queries: ids.map((id) => ({
      queryKey: ["trace", trace.threadId, id],
      queryFn: () => client.trace(trace.threadId, id),
      enabled: id !== trace.runId,
      refetchInterval: ({ state }: { state: { data?: Trace | undefined } }) => (state.data?.status === "running" || state.data?.status === "waiting") && refetchInterval,
    })),
  });
  return ids.flatMap((id, i) => {
    const found = id === trace.runId ? trace : traces[i]!.data;
    return found === undefined ? [] : [{ trace: found, title: `run ${runs.findIndex(({ runId }) => runId === id) + 1}` }];
  });
}

function chainOf(runs: readonly Run[], { runId, continues }: Trace): string[] {
  const ids = [runId];
  for (let id = continues; id !== undefined && ids.length < mostRuns; id = runs.find((run) => run.runId === id)?.continues) ids.unshift(id);
  for (let next = following(runs, runId); next !== undefined && ids.length < 2 * mostRuns; next = following(runs, next)) ids.push(next);
  return ids;
}

const following = (runs: readonly Run[], id: string) => runs.find(({ continues }) => continues === id)?.runId;
