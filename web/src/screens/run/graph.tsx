import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";
import { Empty, Loading } from "../../components/page";
import PipelineGraph from "../../components/pipeline_graph";
import type { PipelineSpan } from "../../components/pipeline_states";
import { Problem } from "../../components/problem";
import { paths } from "../../paths";
import { useClient } from "../../session";

/** What the graph needs of the trace of a run. */
export interface TracedRun {
  runId: string;
  /** The run that this one continues after a decision: it has the earlier steps. */
  continues?: string | undefined;
  agent: string;
  revision?: string | undefined;
  spans: readonly PipelineSpan[];
}

/** Properties of a Graph. */
export interface GraphProps {
  thread: string;
  run: string;
  trace: TracedRun;
}

/** The pipeline of a run as a graph with the states of its steps. A click on a step selects its span. */
export default function Graph({ thread, trace }: GraphProps) {
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  const { data: earlier = [] } = useEarlierRuns(thread, trace);
  const { data: steps, error, refetch } = useSteps(trace);
  const spans = useMemo(() => [...earlier.flatMap((run) => run.spans), ...trace.spans], [earlier, trace.spans]);
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (steps === undefined) return <Loading />;
  if (steps.length === 0) return <Empty title="This run has no graph"><p>Only pipelines have one: agents with <code>steps</code>.</p></Empty>;
  const select = (span: string) => {
    const other = earlier.find((run) => run.spans.some(({ id }) => id === span));
    if (other) navigate(`${paths.run(thread, other.runId)}?${new URLSearchParams({ tab: "graph", span })}`);
    else setParams((before) => new URLSearchParams({ ...Object.fromEntries(before), span }), { replace: true });
  };
  return <PipelineGraph label={`Steps of ${trace.agent} in this run`} steps={steps} spans={spans} selected={params.get("span") ?? undefined} onSelect={select} />;
}

// A pipeline with many approvals has as many runs.
const mostEarlier = 20;

/** The traces of the runs that a run continues, the first one first. They have ended, so they never change. */
function useEarlierRuns(thread: string, { continues }: TracedRun) {
  const client = useClient();
  return useQuery({
    queryKey: ["threads", thread, "traces before", continues],
    queryFn: async () => {
      const found: TracedRun[] = [];
      for (let run = continues; run !== undefined && found.length < mostEarlier;) {
        const trace = await client.trace(thread, run);
        found.unshift(trace);
        run = trace.continues;
      }
      return found;
    },
    enabled: continues !== undefined,
    staleTime: Infinity,
  });
}

/** The steps of the revision with which the run began; they never change. */
function useSteps({ agent, revision }: TracedRun) {
  const client = useClient();
  return useQuery({
    queryKey: ["agents", agent, "steps", revision],
    queryFn: async () => (await client.agent(agent, { revision })).steps ?? [],
    staleTime: Infinity,
  });
}
