import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./span_detail.module.css";
import type { Span } from "./trace";

/** How an interrupt was decided, and by whom; or the link to decide it. */
export function InterruptDetail({ threadId, span }: { threadId: string; span: Span }) {
  const client = useClient();
  const { interruptId, status, decision } = span;
  const approval = useQuery({
    queryKey: ["approval", threadId, interruptId, status],
    enabled: interruptId !== undefined,
    queryFn: async ({ signal }) => {
      for await (const entry of client.audit(threadId, {}, { signal })) if (entry.id === interruptId) return entry;
      return null;
    },
  });
  const { message, approvers = [], decisions = [] } = approval.data ?? {};
  const isOpen = status === "waiting" || status === "running";
  return (
    <section aria-label="Decision" className={styles.part}>
      <h3>{isOpen ? "Waits for a decision" : "Decision"}</h3>
      {message !== undefined && <p>{safeText(message)}</p>}
      {isOpen && approvers.length > 0 && <p className="muted">May decide: {safeText(approvers.join(", "))}</p>}
      {isOpen && interruptId !== undefined && <p><Link href={paths.approval(threadId, interruptId)}>Decide in the inbox</Link></p>}
      {!isOpen && decisions.length === 0 && <p>{decision ?? "The wait has ended without a decision."}</p>}
      <ul className={styles.decisions}>
        {decisions.map(({ decision: what, by, at, reason }, i) => (
          <li key={i}>
            <strong>{what}</strong> {by !== undefined && <>by {safeText(by)}</>} <Time at={at} />
            {reason !== undefined && reason !== "" && <q className={styles.reason}>{safeText(reason)}</q>}
          </li>
        ))}
      </ul>
    </section>
  );
}
