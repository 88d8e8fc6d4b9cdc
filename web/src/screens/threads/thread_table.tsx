import type { ThreadEntry } from "@perdure/client";
import { Link } from "wouter";
import { moneyText } from "../../components/money";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import styles from "./threads.module.css";

const waitTexts: Record<string, string> = { approval: "an approval", question: "an answer", limit: "more budget", client_tool: "a client tool" };

// A column without a value in any row would only take space.
const columns: readonly (Column<ThreadEntry> & { isNeeded?: (thread: ThreadEntry) => boolean })[] = [
  { title: "Thread", cell: (thread) => <Title thread={thread} /> },
  { title: "Status", cell: (thread) => <State thread={thread} /> },
  { title: "Run", cell: (thread) => <LastRun thread={thread} /> },
  { title: "Agent", cell: ({ agent }) => <Link href={paths.agent(agent)} className={styles.plain}>{safeText(agent)}</Link> },
  { title: "Owner", isNeeded: ({ owner }) => owner !== undefined, cell: ({ owner }) => (owner === undefined ? <span className="muted">anonymous</span> : safeText(owner)) },
  { title: "Tokens", align: "end", isNeeded: ({ tokens }) => tokens !== undefined, cell: ({ tokens }) => tokens?.total.toLocaleString() },
  { title: "Cost", align: "end", isNeeded: ({ cost }) => cost !== undefined, cell: ({ cost }) => cost && moneyText(cost) },
  { title: "Last activity", align: "end", cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

/** The threads as a table. */
export function ThreadTable({ threads, isStale }: { threads: readonly ThreadEntry[]; isStale: boolean }) {
  const shown = columns.filter(({ isNeeded }) => !isNeeded || threads.some(isNeeded));
  return (
    <div className={styles.table} data-stale={isStale || undefined}>
      <Table label="Threads" columns={shown} rows={threads} keyOf={({ threadId }) => threadId} />
    </div>
  );
}

function Title({ thread: { threadId, title } }: { thread: ThreadEntry }) {
  return (
    <div className={styles.title}>
      <Link href={paths.thread(threadId)} className="truncate">{safeText(title || threadId)}</Link>
      {title !== undefined && title !== "" && <code className={`truncate ${styles.id}`}>{safeText(threadId)}</code>}
    </div>
  );
}

function LastRun({ thread: { threadId, title, runId } }: { thread: ThreadEntry }) {
  if (runId === undefined) return null;
  return <Link href={paths.run(threadId, runId)} className={styles.run}>Last run<span className="visually-hidden"> of {safeText(title || threadId)}</span></Link>;
}

function State({ thread: { status, waitingFor = [], retrying, stuck } }: { thread: ThreadEntry }) {
  if (stuck) {
    return (
      <div className={styles.state}>
        <Status value="stuck" />
        <span className={styles.reason}>{safeText(stuck.reason)}</span>
      </div>
    );
  }
  if (retrying && status === "running") {
    return (
      <div className={styles.state}>
        <Status value="retrying" />
        <span className={styles.why} title={safeText(retrying.error)}>{safeText(`${retrying.name ?? retrying.activity}, attempt ${retrying.attempt}: ${retrying.error}`)}</span>
      </div>
    );
  }
  return (
    <div className={styles.state}>
      <Status value={status} />
      {status === "waiting" && waitingFor.length > 0 && <span className={styles.why}>for {waitingFor.map((kind) => waitTexts[kind] ?? kind).join(", ")}</span>}
    </div>
  );
}
