import type { Agent, ThreadEntry } from "@perdure/client";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Button } from "../../components/button";
import { Empty, Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { type Column, Table } from "../../components/table";
import { ThreadStatus } from "../../components/thread_status";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./agent.module.css";

const columns: Column<ThreadEntry>[] = [
  { title: "Thread", cell: ({ threadId, title }) => <Link href={paths.thread(threadId)}>{safeText(title ?? threadId)}</Link> },
  { title: "Status", cell: (thread) => <ThreadStatus thread={thread} /> },
  { title: "Run", cell: ({ threadId, runId }) => (runId === undefined ? "–" : <Link href={paths.run(threadId, runId)}><code>{safeText(runId)}</code></Link>) },
  { title: "Owner", cell: ({ owner }) => safeText(owner ?? "–") },
  { title: "Updated", cell: ({ updatedAt }) => <Time at={updatedAt} /> },
];

/** The threads that the agent answers, and their latest runs. */
export function AgentRuns({ agent: { name } }: { agent: Agent }) {
  const client = useClient();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ["threads", "agent", name],
    queryFn: async ({ pageParam }) => client.threads({ agent: name, limit: 50, ...(pageParam !== undefined && { cursor: pageParam }) }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: 5_000,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const threads = data.pages.flatMap(({ items }) => items);
  if (threads.length === 0) {
    return (
      <Empty title="No runs yet">
        <p><Link href={paths.newChat(name)}>Chat with {name}</Link>, or start a run from a terminal:</p>
        <pre><code>{`perdure run ${name} "What can you do?"`}</code></pre>
      </Empty>
    );
  }
  return (
    <div className={styles.section}>
      <Table label={`Threads of ${name}`} columns={columns} rows={threads} keyOf={({ threadId }) => threadId} />
      {hasNextPage && <div><Button isDisabled={isFetchingNextPage} onPress={() => void fetchNextPage()}>Load more</Button></div>}
    </div>
  );
}
