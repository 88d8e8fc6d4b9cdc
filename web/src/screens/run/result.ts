import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";
import type { Trace } from "./trace";

/** The result of a run that has finished, any JSON; undefined if it has none. */
export function useResult({ threadId, runId, status }: Trace): unknown {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ["run", threadId, runId],
    queryFn: ({ signal }) => client.run(threadId, runId, {}, { signal }),
    enabled: status === "finished",
    staleTime: Infinity,
  });
  return data?.result;
}
