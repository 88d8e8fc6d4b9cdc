import { useQuery } from "@tanstack/react-query";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { useClient } from "../../session";
import styles from "./run_notices.module.css";

/** Why the active run of a thread makes no progress; nothing if it makes progress. */
export function StuckNotice({ threadId }: { threadId: string }) {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ["thread", threadId],
    queryFn: ({ signal }) => client.thread(threadId, {}, { signal }),
    refetchInterval: 5_000,
  });
  if (data?.stuck === undefined) return null;
  return (
    <p className={styles.line} data-kind="stuck" role="status">
      The run makes no progress: {safeText(data.stuck.reason)}. Its next task was scheduled <Time at={data.stuck.since} />.
    </p>
  );
}
