import type { Approval } from "@perdure/client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import { useClient } from "../../session";

const queryKey = ["approvals", "mine"];
const pause = 200;

/**
 * Returns the IDs of the open approvals that the caller may decide. Only the list of the API leaves out those for which the
 * caller has voted, and not its feed: so this lists again after each change of the open approvals.
 */
export function useMine(open: readonly Approval[]): ReadonlySet<string> | undefined {
  const client = useClient();
  const queries = useQueryClient();
  const { data } = useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      const ids: string[] = [];
      for await (const { id } of client.approvals({ assignee: "me", limit: 500 }, { signal })) ids.push(id);
      return ids;
    },
    refetchInterval: 15_000,
    refetchIntervalInBackground: true, // it notifies
  });
  useEffect(() => {
    const timer = window.setTimeout(() => void queries.invalidateQueries({ queryKey }), pause);
    return () => window.clearTimeout(timer);
  }, [queries, open]);
  return useMemo(() => data && new Set(data), [data]);
}

/** Returns what removes an approval from those that wait for the caller, after they have voted. */
export function useForgetMine(): (id: string) => void {
  const queries = useQueryClient();
  return useCallback((id) => queries.setQueryData<string[]>(queryKey, (ids) => ids?.filter((other) => other !== id)), [queries]);
}
