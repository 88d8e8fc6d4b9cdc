import type { Wait } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";
import type { Span } from "./trace";

const refetchInterval = 5_000;

/** Returns the wait that an interrupt of a run is; undefined = it has ended, or a person decides. */
export function useWait(threadId: string, { interruptId, status }: Span): Wait | undefined {
  const client = useClient();
  const isOpen = interruptId !== undefined && (status === "waiting" || status === "running");
  const { data = [] } = useQuery({
    queryKey: ["waits", "of", threadId],
    enabled: isOpen,
    queryFn: async ({ signal }) => (await client.waits({ thread: threadId, limit: 500 }, { signal })).items,
    refetchInterval,
  });
  return isOpen ? data.find(({ id }) => id === interruptId) : undefined;
}
