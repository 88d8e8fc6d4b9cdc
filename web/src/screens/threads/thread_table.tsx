import type { ThreadEntry } from "@perdure/client";
import { Link } from "wouter";
import { moneyText } from "../../components/money";
import { safeText } from "../../components/safe_text";
import { type Column, Table } from "../../components/table";
import { ThreadStatus, threadStatus } from "../../components/thread_status";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import styles from "./threads.module.css";

const waitTexts: Record<string, string> = { approval: "an approval", question: "an answer", limit: "more budget", client_tool: "a client tool", timer: "a time", event: "an event" };

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

function State({ thread }: { thread: ThreadEntry }) {
  const why = whyText(thread);
  return (
    <div className={styles.state}>
      <ThreadStatus thread={thread} />
      {why !== undefined && <span className={styles.why} title={why}>{why}</span>}
    </div>
  );
}

// Why a thread is stuck, is retrying, or waits.
function whyText(thread: ThreadEntry): string | undefined {
  const { stuck, retrying, waitingFor = [] } = thread;
  switch (threadStatus(thread)) {
    case "stuck": return stuck && safeText(stuck.reason);
    case "retrying": return retrying && safeText(`${retrying.name ?? retrying.activity}, attempt ${retrying.attempt}: ${retrying.error}`);
    case "waiting": return waitingFor.length === 0 ? undefined : `for ${waitingFor.map((kind) => waitTexts[kind] ?? kind).join(", ")}`;
    default: return undefined;
  }
}
