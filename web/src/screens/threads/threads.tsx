import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Button, ButtonLink } from "../../components/button";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { useShortcuts } from "../../components/shortcuts";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { type Filters, isFiltered, queryOf, useFilters } from "./filters";
import { ThreadFilters } from "./thread_filters";
import { ThreadTable } from "./thread_table";
import styles from "./threads.module.css";

const pageSize = 50;
const refetchInterval = 5_000;

/** All threads that the caller may read, last updated first. */
export default function Threads() {
  const [filters, change] = useFilters();
  const threads = useThreads(filters);
  const items = threads.data?.pages.flatMap((page) => page.items) ?? [];
  useShortcuts("Threads", [{ keys: "/", label: "Search the threads", run: () => document.querySelector<HTMLInputElement>(`.${styles.search} input`)?.focus() }]);
  return (
    <Page title="Threads" actions={<ButtonLink href={paths.home}>New conversation</ButtonLink>}>
      <div className={styles.screen}>
        <ThreadFilters filters={filters} onChange={change} />
        {threads.error && <Problem error={threads.error} onRetry={() => void threads.refetch()} />}
        {threads.isPending && <Loading />}
        {items.length > 0 && <ThreadTable threads={items} isStale={threads.isPlaceholderData} />}
        {threads.data && items.length === 0 && !threads.isPlaceholderData && <NoThreads filters={filters} />}
        <p className={styles.more} role="status">
          {items.length > 0 && `${items.length}${threads.hasNextPage ? "+" : ""} threads`}
        </p>
        {threads.hasNextPage && <Button onPress={() => void threads.fetchNextPage()} isDisabled={threads.isFetchingNextPage}>Load more</Button>}
      </div>
    </Page>
  );
}

// All pages that are shown are read again, so with more of them less often.
function useThreads(filters: Filters) {
  const client = useClient();
  return useInfiniteQuery({
    queryKey: ["threads", filters],
    queryFn: async ({ pageParam, signal }) => client.threads({ ...queryOf(filters), limit: pageSize, cursor: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => refetchInterval * (state.data?.pages.length ?? 1),
  });
}

function NoThreads({ filters }: { filters: Filters }) {
  if (!isFiltered(filters)) {
    return (
      <Empty title="No threads yet">
        <p>A thread begins with its first message. <Link href={paths.home}>Start a conversation</Link>, or run an agent:</p>
        <pre>perdure run demo "What is 12*7?"</pre>
      </Empty>
    );
  }
  return (
    <Empty title="No thread matches">
      <p>The search finds words of titles and metadata.</p>
      {filters.q !== "" && <p>Is it an ID? <Link href={paths.thread(filters.q)}>Open the thread “{filters.q}”</Link></p>}
    </Empty>
  );
}
