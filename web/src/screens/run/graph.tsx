import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";
import { flushSync } from "react-dom";
import { useLocation } from "wouter";
import { Empty, Loading } from "../../components/page";
import PipelineGraph from "../../components/pipeline_graph";
import { Problem } from "../../components/problem";
import { changeSearchParams } from "../../components/search_param";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./run.module.css";
import { type ChainedRun, useRunChain } from "./run_chain";
import { useThread } from "./run_trail";
import { SpanDetail } from "./span_detail";
import type { Span, Trace } from "./trace";

/** Properties of a Graph. */
export interface GraphProps {
  trace: Trace;
  /** The ID of the selected span. */
  selected: string;
  onSelect: (id: string) => void;
  /** Opens the dialog that forks the run before a span. */
  onFork: (before: Span) => void;
}

/** The pipeline of a run as a graph with the states of its steps, those of the runs before and after a decision included. */
export default function Graph({ trace, selected, onSelect, onFork }: GraphProps) {
  const [, navigate] = useLocation();
  const body = useRef<HTMLDivElement>(null);
  const { data: steps, error, refetch } = useSteps(trace);
  const chain = useRunChain(trace);
  const { data: thread } = useThread(trace.threadId);
  const spans = useMemo(() => spansOf(chain, trace), [chain.map(({ trace: { cursor, status } }) => cursor + status).join(), trace]);
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (steps === undefined) return <Loading />;
  if (steps.length === 0) return <Empty title="This run has no graph"><p>Only pipelines have one: agents with <code>steps</code>.</p></Empty>;
  const run = chain.find(({ trace: { spans: own } }) => own.some(({ id }) => id === selected));
  const span = run?.trace.spans.find(({ id }) => id === selected);
  const isOther = run !== undefined && run.trace.runId !== trace.runId;
  const select = (id: string, byKey: boolean) => {
    flushSync(() => onSelect(id));
    changeSearchParams({ span: id });
    if (byKey) document.getElementById("span-title")?.focus();
  };
  const close = () => {
    body.current?.querySelector<HTMLElement>("[data-step][aria-pressed=true]")?.focus();
    onSelect("");
  };
  const showEvents = ({ id }: Span) => (isOther ? navigate(`${paths.run(trace.threadId, run.trace.runId)}?${new URLSearchParams({ tab: "events", in: id })}`) : changeSearchParams({ tab: "events", in: id }));
  return (
    <div className={styles.spans} ref={body}>
      <PipelineGraph
        label={`Steps of ${trace.agent} in this run`} steps={steps} spans={spans} skippedText={thread?.forkedFrom?.at === undefined ? undefined : "not in this run"} selected={span && stepAround(run!.trace, span)} onSelect={select}
      />
      {span && <SpanDetail key={span.id} trace={run!.trace} span={span} otherRun={isOther ? run.title : undefined} onClose={close} onShowEvents={showEvents} onFork={isOther ? undefined : onFork} />}
    </div>
  );
}

const spansOf = (chain: readonly ChainedRun[], { runId }: Trace) =>
  chain.flatMap(({ trace, title }) => (trace.runId === runId ? trace.spans : trace.spans.map((span) => ({ ...span, otherRun: title }))));

// The ID of the innermost step around a span, which may be a step itself.
function stepAround({ spans }: Trace, span: Span): string | undefined {
  const byId = new Map(spans.map((each) => [each.id, each]));
  let at: Span | undefined = span;
  while (at && at.kind !== "step") at = at.parentId === undefined ? undefined : byId.get(at.parentId);
  return at?.id;
}

/** The steps of the revision with which the run began; they never change. */
function useSteps({ agent, revision }: Trace) {
  const client = useClient();
  return useQuery({
    queryKey: ["agents", agent, "steps", revision],
    queryFn: async () => (await client.agent(agent, { revision })).steps ?? [],
    staleTime: Infinity,
  });
}
