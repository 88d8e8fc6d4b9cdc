import type { Schedule } from "@perdure/client";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { Button } from "../../components/button";
import { PlusIcon } from "../../components/icons";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { useShortcuts } from "../../components/shortcuts";
import { Status } from "../../components/status";
import { type Column, Table } from "../../components/table";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { NewSchedule } from "./new_schedule";
import styles from "./schedules.module.css";
import { timesText } from "./times";

const columns: Column<Schedule>[] = [
  {
    title: "Schedule",
    cell: ({ id, note }) => (
      <>
        <Link href={paths.schedule(id)}>{id}</Link>
        {note !== undefined && <div className="muted">{note}</div>}
      </>
    ),
  },
  { title: "State", cell: ({ paused }) => <Status value={paused ? "paused" : "ready"} text={paused ? "paused" : "active"} /> },
  { title: "Agent", cell: ({ agent }) => <Link href={paths.agent(agent)}>{agent}</Link> },
  { title: "Times", cell: (schedule) => <span className="mono">{timesText(schedule)}</span> },
  { title: "Next", cell: ({ next, paused }) => (next[0] !== undefined && !paused ? <Time at={next[0]} /> : <span className="muted">none</span>) },
  { title: "Fired", align: "end", cell: ({ fired }) => fired },
  { title: "Missed", align: "end", cell: ({ missed, skipped }) => missed + skipped },
];

/** The list of all schedules. */
export default function Schedules() {
  const client = useClient();
  const [isNew, setNew] = useState(false);
  const list = useInfiniteQuery({
    queryKey: ["schedules"],
    queryFn: ({ pageParam }) => client.schedules({ limit: 50, cursor: pageParam }).then((page) => page),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: 10_000,
  });
  useShortcuts("Schedules", [{ keys: "n", label: "New schedule", run: () => setNew(true) }]);
  const rows = list.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <Page title="Schedules" actions={<Button onPress={() => setNew(true)}><PlusIcon /> New schedule</Button>}>
      {list.isPending && <Loading />}
      {list.error && <Problem error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && rows.length === 0 && (
        <Empty title="No schedules yet">
          <p>A schedule starts runs of an agent at fixed times: a report every morning, a check every hour. It continues while no page is open, and after a restart.</p>
          <Button kind="primary" onPress={() => setNew(true)}>New schedule</Button>
        </Empty>
      )}
      {rows.length > 0 && <Table label="Schedules" columns={columns} rows={rows} keyOf={({ id }) => id} />}
      {list.hasNextPage && <div className={styles.more}><Button onPress={() => void list.fetchNextPage()} isDisabled={list.isFetchingNextPage}>Load more</Button></div>}
      {isNew && <NewSchedule onClose={() => setNew(false)} />}
    </Page>
  );
}
