import type { Wait } from "@perdure/client";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { Button } from "../../components/button";
import { Choice } from "../../components/choice";
import { Countdown } from "../../components/countdown";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { useSearchParam } from "../../components/search_param";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { WaitActions } from "../../components/wait_actions";
import { WaitKindIcon } from "../../components/wait_icon";
import { matchText, waitText } from "../../components/wait_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./waits.module.css";

const pageSize = 50;
const refetchInterval = 5_000;

const kinds = [
  { id: "", label: "Times and events" },
  { id: "timer", label: "Times" },
  { id: "event", label: "Events" },
];

const columns: Column<Wait>[] = [
  { title: "Thread", cell: ({ threadId }) => <Link href={paths.thread(threadId)}>{safeText(threadId)}</Link> },
  { title: "Waits", cell: (wait) => <What wait={wait} /> },
  { title: "Left", cell: ({ kind, until }) => <Countdown to={until} event={kind === "timer" ? "continues" : "stops waiting"} isShort /> },
  { title: "Agent", cell: ({ agent }) => <Link href={paths.agent(agent)} className={styles.plain}>{safeText(agent)}</Link> },
  { title: "Since", cell: ({ openedAt }) => <Time at={openedAt} /> },
  { title: "End it", cell: (wait) => <Actions wait={wait} /> },
];

/** The runs that wait for a time or an event, those whose wait ends first at the beginning. */
export default function Waits() {
  const client = useClient();
  const [kind, setKind] = useSearchParam("kind");
  const list = useInfiniteQuery({
    queryKey: ["waits", kind],
    queryFn: async ({ pageParam, signal }) => client.waits({ kind: kind === "timer" || kind === "event" ? kind : undefined, limit: pageSize, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: ({ state }) => refetchInterval * (state.data?.pages.length ?? 1),
  });
  const waits = list.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Page title="Waiting" actions={<Choice label="Waiting for" isLabelHidden options={kinds} value={kind} onChange={setKind} />}>
      {list.isPending && <Loading />}
      {list.error && <Problem error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && waits.length === 0 && <NoWaits isFiltered={kind !== ""} />}
      {waits.length > 0 && <div className={styles.waits}><Table label="Waits" columns={columns} rows={waits} keyOf={({ threadId, id }) => `${threadId}/${id}`} /></div>}
      {list.hasNextPage && <div className={styles.more}><Button onPress={() => void list.fetchNextPage()} isDisabled={list.isFetchingNextPage}>Load more</Button></div>}
    </Page>
  );
}

function What({ wait }: { wait: Wait }) {
  const match = matchText(wait);
  return (
    <div className={styles.what}>
      <span className={styles.kind}><WaitKindIcon kind={wait.kind} /> {safeText(waitText(wait, wait.until))}</span>
      {match !== "" && <span className="muted">where {safeText(match)}</span>}
    </div>
  );
}

function Actions({ wait: { id, threadId, ...wait } }: { wait: Wait }) {
  const client = useClient();
  const queries = useQueryClient();
  const decide = async (decision: Parameters<typeof client.decide>[2]) => {
    try {
      return await client.decide(threadId, id, decision);
    } finally {
      void queries.invalidateQueries({ queryKey: ["waits"] });
    }
  };
  return <WaitActions wait={wait} name={`in ${safeText(threadId)}`} decide={decide} />;
}

function NoWaits({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No run waits for this" />;
  return (
    <Empty title="No run waits">
      <p>An agent can wait for a time, or for an event of another system: days for a payment, until tomorrow for a reminder. Here you see for what, and can continue it early.</p>
      <pre>{`steps:
  - name: paid
    event: {name: payment.received, timeout: 7d}`}</pre>
      <p>An event arrives like this:</p>
      <pre>perdure event send payment.received</pre>
    </Empty>
  );
}
