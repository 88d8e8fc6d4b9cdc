import type { Approval } from "@perdure/client";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

const mostThreads = 100;

/** Returns the titles of the threads of approvals by ID, of those that the caller may read. Equal calls differ by them. */
export function useThreadTitles(approvals: readonly Approval[], areOpen: boolean): ReadonlyMap<string, string> {
  const client = useClient();
  const ids = [...new Set(approvals.map(({ threadId }) => threadId))].sort();
  const { data } = useQuery({
    queryKey: ["thread titles", areOpen, ...ids],
    queryFn: async ({ signal }) => {
      const { items } = await client.threads({ limit: mostThreads, ...(areOpen && { status: "waiting" }) }, { signal });
      return new Map(items.flatMap(({ threadId, title }) => (title ? [[threadId, title] as const] : [])));
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
  });
  return data ?? none;
}

const none: ReadonlyMap<string, string> = new Map();
