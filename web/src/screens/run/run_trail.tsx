import type { Run } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { IconButton } from "../../components/button";
import { Choice } from "../../components/choice";
import { ChevronIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./run_trail.module.css";

/** The runs of a thread, oldest first. The segments of a run are one. */
export function useRuns(threadId: string) {
  const client = useClient();
  return useQuery({
    queryKey: ["runs", threadId, "oldest first"],
    queryFn: async ({ signal }) => {
      const { items } = await client.runs(threadId, { limit: 200 }, { signal });
      const byId = new Map<string, Run>();
      for (const run of items) if (!byId.has(run.runId)) byId.set(run.runId, run);
      return [...byId.values()].reverse();
    },
    refetchInterval: 5_000,
  });
}

/** The summary of a thread. */
export function useThread(threadId: string) {
  const client = useClient();
  return useQuery({ queryKey: ["thread", threadId], queryFn: ({ signal }) => client.thread(threadId, {}, { signal }) });
}

/** Where a run belongs: links to its thread, and to the thread's other runs. */
export function RunTrail({ threadId, runId, status }: { threadId: string; runId: string; status: string | undefined }) {
  const { data: runs = [] } = useRuns(threadId);
  const { data: thread } = useThread(threadId);
  return (
    <span className={styles.trail}>
      <Link href={paths.threads}>Threads</Link>
      <span aria-hidden="true">/</span>
      <Link href={paths.thread(threadId)} className="truncate">{safeText(thread?.title ?? threadId)}</Link>
      <span aria-hidden="true">/</span>
      {runs.length > 1 ? <RunSwitch {...{ threadId, runId, runs, status }} /> : <span className="truncate">{safeText(runId)}</span>}
    </span>
  );
}

function RunSwitch({ threadId, runId, runs, status }: { threadId: string; runId: string; runs: Run[]; status: string | undefined }) {
  const [, navigate] = useLocation();
  const index = runs.findIndex((run) => run.runId === runId);
  const go = (run: Run | undefined) => run && navigate(paths.run(threadId, run.runId));
  const options = runs.map((run, i) => ({ id: run.runId, label: `Run ${i + 1} of ${runs.length}, ${(run.runId === runId && status) || stateOf(run)}` }));
  return (
    <span className={styles.switch}>
      <IconButton label="Previous run" isDisabled={index <= 0} onPress={() => go(runs[index - 1])}><span className={styles.previous}><ChevronIcon /></span></IconButton>
      <Choice label="Run" isLabelHidden options={options} value={runId} onChange={(id) => navigate(paths.run(threadId, id))} />
      <IconButton label="Next run" isDisabled={index >= runs.length - 1} onPress={() => go(runs[index + 1])}><span className={styles.next}><ChevronIcon /></span></IconButton>
    </span>
  );
}

const states: Record<string, string> = { success: "finished", interrupt: "waiting", cancelled: "cancelled", error: "failed" };

const stateOf = ({ outcome }: Run): string => (outcome === undefined ? "running" : states[outcome]!);
