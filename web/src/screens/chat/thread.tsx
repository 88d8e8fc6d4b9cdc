import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { ProblemError } from "@perdure/client";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { Conversation } from "./conversation";
import { startingThread } from "./starting";

/** The screen of a thread. */
export default function Thread({ thread }: { thread: string }) {
  const client = useClient();
  const starting = startingThread(thread);
  const summary = useQuery({
    queryKey: ["thread", thread],
    queryFn: async ({ signal }) => {
      await starting?.started.catch(() => {});
      return client.thread(thread, {}, { signal });
    },
    refetchInterval: 5_000,
  });
  const known = starting?.agent ?? summary.data?.agent;
  // A handoff changes the agent of the thread. The messages still go to the first one, which has handed it over.
  const [agent, setAgent] = useState(known);
  if (agent === undefined && known !== undefined) setAgent(known);
  if (agent !== undefined) return <Conversation threadId={thread} agent={agent} summary={summary.data} starting={starting} />;
  if (summary.isPending) return <Page title="Thread"><Loading /></Page>;
  if (summary.error instanceof ProblemError && summary.error.status === 404) return <Unknown thread={thread} />;
  return (
    <Page title="Thread">
      <Problem error={summary.error ?? new Error("No agent has answered in this thread yet.")} onRetry={() => void summary.refetch()} />
    </Page>
  );
}

function Unknown({ thread }: { thread: string }) {
  return (
    <Page title="No such thread">
      <Empty title="This thread does not exist">
        <p>It was deleted, or its owner does not share it with you.</p>
        <p><code>{thread}</code></p>
        <p><Link href={paths.threads}>All threads</Link> · <Link href={paths.home}>New chat</Link></p>
      </Empty>
    </Page>
  );
}
