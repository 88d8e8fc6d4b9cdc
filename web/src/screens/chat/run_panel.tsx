import type { Run, Thread } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { Duration, Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { CopyButton } from "./copy_button";
import styles from "./side_panel.module.css";

const shownRuns = 20;

/** The runs of the thread, and what they have used. */
export function RunPanel({ thread: { threadId }, summary, agent }: { thread: ThreadHook<unknown>; summary: Thread | undefined; agent: string }) {
  const client = useClient();
  const runs = useQuery({
    queryKey: ["runs", threadId],
    queryFn: ({ signal }) => client.runs(threadId, { limit: shownRuns }, { signal }).then(({ items }) => items),
    refetchInterval: 5_000,
    enabled: summary !== undefined,
  });
  const tokens = tokensOf(summary?.usage);
  return (
    <>
      <section className={styles.section}>
        <h3>Thread</h3>
        <dl className={styles.facts}>
          <dt>ID</dt>
          <dd className={styles.run}><span className="mono">{safeText(threadId)}</span> <CopyButton label="Copy the ID of the thread" text={threadId} /></dd>
          <dt>Agent</dt>
          <dd><Link href={paths.agent(agent)}>{safeText(agent)}</Link></dd>
          <dt>Runs</dt>
          <dd className="number">{summary?.runs ?? 0}</dd>
          <dt>Tokens</dt>
          <dd className="number">{tokens.input.toLocaleString()} in, {tokens.output.toLocaleString()} out</dd>
        </dl>
      </section>
      <section className={styles.section}>
        <h3>Runs, newest first</h3>
        {runs.error && <Problem error={runs.error} onRetry={() => void runs.refetch()} />}
        {runs.isPending && <Loading />}
        <ol className={styles.items} aria-label="Runs">
          {runs.data?.map((run, i) => <li key={`${run.runId} ${run.segment}`}><RunRow threadId={threadId} run={run} isLast={i === 0} /></li>)}
        </ol>
        {runs.data?.length === shownRuns && <p className="muted">The last {shownRuns}.</p>}
      </section>
    </>
  );
}

// Only the last run may wait: another one has continued what waited.
function RunRow({ threadId, run: { runId, startedAt, endedAt, outcome, code, event }, isLast }: { threadId: string; run: Run; isLast: boolean }) {
  const status = outcome === "interrupt" && !isLast ? "finished" : outcome;
  return (
    <div className={styles.run}>
      <Link href={paths.run(threadId, runId)}><Time at={startedAt} /></Link>
      <Status value={status ?? (endedAt === undefined ? "running" : "finished")} />
      <span className={styles.end}><Duration from={startedAt} to={endedAt} /></span>
      {code !== undefined && <code className={styles.failure}>{safeText(code)}</code>}
      {event && <span className="muted">started by the event <code>{safeText(event.type)}</code></span>}
    </div>
  );
}

function tokensOf(usage: Thread["usage"]): { input: number; output: number } {
  const sum = (name: string) => (usage ?? []).reduce((total, entry) => total + (typeof entry[name] === "number" ? entry[name] : 0), 0);
  return { input: sum("inputTokens"), output: sum("outputTokens") };
}
