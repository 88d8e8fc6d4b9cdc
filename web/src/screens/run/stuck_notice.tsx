import { useQuery } from "@tanstack/react-query";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { useClient } from "../../session";
import styles from "./run_notices.module.css";

/** Why no worker gets the active run of a thread ahead; nothing if it gets ahead. */
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
      The run does not get ahead: {safeText(data.stuck.reason)}. Its next task was scheduled <Time at={data.stuck.since} />.
    </p>
  );
}
