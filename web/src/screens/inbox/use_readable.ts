import { ProblemError } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

/** Whether the caller may read a thread; undefined until it is known. An approver may decide in threads that they may not read. */
export function useReadable(thread: string): boolean | undefined {
  const client = useClient();
  const { data, isError } = useQuery({
    queryKey: ["readable", thread],
    queryFn: async ({ signal }) => {
      try {
        await client.thread(thread, {}, { signal });
        return true;
      } catch (error) {
        if (error instanceof ProblemError && (error.status === 403 || error.status === 404)) return false;
        throw error;
      }
    },
    enabled: thread !== "",
    staleTime: 60_000,
  });
  return data ?? (isError ? true : undefined); // what needs the thread shows the error
}
