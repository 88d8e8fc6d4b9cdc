import type { ThreadEntry } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { ThreadStatus } from "../../components/thread_status";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./recent_threads.module.css";

const shown = 10;

/** The threads that were active last. */
export function RecentThreads() {
  const client = useClient();
  const { data, error } = useQuery({
    queryKey: ["threads", "recent"],
    queryFn: ({ signal }) => client.threads({ limit: shown }, { signal }).then(({ items }) => items),
    refetchInterval: 5_000,
  });
  return (
    <section className={styles.recent} aria-labelledby="recent-title">
      <header className={styles.head}>
        <h2 id="recent-title">Recent threads</h2>
        <Link href={paths.threads}>All</Link>
      </header>
      {error && <Problem error={error} />}
      {data?.length === 0 && <p className="muted">None yet. Write a message to begin one.</p>}
      <ul className={styles.list}>{data?.map((thread) => <li key={thread.threadId}><Recent thread={thread} /></li>)}</ul>
    </section>
  );
}

function Recent({ thread }: { thread: ThreadEntry }) {
  const { threadId, title, agent, status, updatedAt } = thread;
  return (
    <Link href={paths.thread(threadId)} className={styles.thread}>
      <span className={`truncate ${styles.title}`}>{safeText(title || threadId)}</span>
      <span className={styles.facts}>{safeText(agent)} · <Time at={updatedAt} /></span>
      {status !== "idle" && <ThreadStatus thread={thread} />}
    </Link>
  );
}
