import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { announce } from "../../components/announcer";
import { Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { changeSearchParams, useSearchParam } from "../../components/search_param";
import { Status } from "../../components/status";
import { TabLinks } from "../../components/tab_links";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { Events } from "./events";
import { ForkDialog } from "./fork_dialog";
import { InputOutput } from "./input_output";
import { RunActions } from "./run_actions";
import { RunFacts } from "./run_facts";
import { RunNotices } from "./run_notices";
import { RunTrail } from "./run_trail";
import { SpanDetail } from "./span_detail";
import { Timeline } from "./timeline";
import { causeOf, type Span, type Trace, type Tree, treeOf } from "./trace";
import { useTrace } from "./trace_feed";
import styles from "./run.module.css";

const PipelineGraph = lazy(() => import("./graph"));

/** A run: its timeline, its events, and why it failed. */
export default function Run({ thread, run }: { thread: string; run: string }) {
  const { trace, error, lostAt, reload } = useTrace(thread, run);
  const status = trace?.status;
  const tree = useMemo(() => treeOf(trace?.spans ?? []), [trace]);
  const fork = useForkDialog();
  const last = useRef(status);
  useEffect(() => {
    if (last.current !== undefined && status !== undefined && last.current !== status) announce(`The run is ${status}`);
    last.current = status;
  }, [status]);
  return (
    <Page
      title={trace ? `Run of ${trace.agent}` : "Run"}
      layout="fixed"
      trail={<RunTrail threadId={thread} runId={run} status={status} />}
      beside={status && <Status value={lostAt === undefined ? status : "unknown"} />}
      actions={trace && <RunActions trace={trace} onFork={() => fork.open()} />}
    >
      {error !== undefined && <div className={styles.problem}><Problem error={error} onRetry={reload} /></div>}
      {lostAt !== undefined && <p className={styles.lost} role="status">Reconnecting … Here is the run as of <Time at={new Date(lostAt).toISOString()} isAbsolute />.</p>}
      {trace ? <TracedRun trace={trace} tree={tree} onFork={fork.open} /> : error === undefined && <Loading label="Loading the trace …" />}
      {trace && fork.isOpen && <ForkDialog trace={trace} tree={tree} before={fork.before} onClose={fork.close} />}
    </Page>
  );
}

// The dialog that forks the run, before a span. The address opens it, too.
function useForkDialog() {
  const [inAddress, setInAddress] = useSearchParam("fork");
  const [opened, setOpened] = useState<{ before?: Span | undefined }>();
  return {
    isOpen: opened !== undefined || inAddress !== "",
    before: opened?.before,
    open: (before?: Span) => setOpened({ before }),
    close: () => {
      setOpened(undefined);
      setInAddress("");
    },
  };
}

function TracedRun({ trace, tree, onFork }: { trace: Trace; tree: Tree; onFork: (before?: Span) => void }) {
  const [tab] = useSearchParam("tab");
  const [selected, select] = useSelectedSpan(tree);
  const isPipeline = trace.spans.some(({ kind }) => kind === "step");
  const tabs = [
    { id: "", label: "Timeline" },
    ...(isPipeline ? [{ id: "graph", label: "Graph" }] : []),
    { id: "events", label: "Events" },
    { id: "content", label: "Input and output" },
  ];
  const current = tabs.find(({ id }) => id === tab) ?? tabs[0]!;
  const show = (span: Span) => {
    changeSearchParams({ tab: "" });
    select(span.id);
  };
  return (
    <div className={styles.run}>
      <RunFacts trace={trace} />
      <RunNotices trace={trace} tree={tree} onShow={show} onFork={() => onFork()} />
      <TabLinks label="Parts of the run" tabs={tabs.map(({ id, label }) => ({ label, href: hrefOf(trace, id, selected), isCurrent: id === current.id }))} />
      <div className={styles.body}>
        {current.id === "" && <Spans {...{ trace, tree, selected, select, onFork }} />}
        {current.id === "graph" && (
          <Suspense fallback={<Loading />}>
            <PipelineGraph {...{ trace, selected, onFork }} onSelect={select} />
          </Suspense>
        )}
        {current.id === "events" && <Events trace={trace} tree={tree} />}
        {current.id === "content" && <InputOutput trace={trace} />}
      </div>
    </div>
  );
}

interface SpansProps {
  trace: Trace;
  tree: Tree;
  selected: string;
  select: (id: string) => void;
  onFork: (before: Span) => void;
}

function Spans({ trace, tree, selected, select, onFork }: SpansProps) {
  const span = tree.byId.get(selected)?.span;
  const body = useRef<HTMLDivElement>(null);
  const showEvents = ({ id }: Span) => changeSearchParams({ tab: "events", in: id });
  const close = () => {
    select("");
    body.current?.querySelector<HTMLElement>("[role=treegrid]")?.focus();
  };
  return (
    <div className={styles.spans} ref={body}>
      <Timeline tree={tree} selected={selected} onSelect={select} onOpen={() => document.getElementById("span-title")?.focus()} />
      {span && <SpanDetail key={span.id} trace={trace} span={span} onClose={close} onShowEvents={showEvents} onFork={onFork} />}
    </div>
  );
}

function hrefOf({ threadId, runId }: Trace, tab: string, span: string): string {
  const query = new URLSearchParams({ ...(tab !== "" && { tab }), ...(span !== "" && { span }) }).toString();
  return paths.run(threadId, runId) + (query === "" ? "" : `?${query}`);
}

// The selected span, which the address keeps. At first it is the one that made the run fail. Keys that are held down select
// faster than browsers accept changes of the address.
function useSelectedSpan(tree: Tree): [string, (id: string) => void] {
  const [inAddress] = useSearchParam("span");
  const [selected, setSelected] = useState<string>();
  useEffect(() => {
    if (selected === undefined || selected === inAddress) return;
    const timer = window.setTimeout(() => changeSearchParams({ span: selected }), 200);
    return () => window.clearTimeout(timer);
  }, [selected, inAddress]);
  return [selected ?? (inAddress || (causeOf(tree)?.id ?? "")), setSelected];
}
