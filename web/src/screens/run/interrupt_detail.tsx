import type { Decision as DecisionValue } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { Countdown } from "../../components/countdown";
import { Decision } from "../../components/decision";
import { Arguments } from "../../components/decision_arguments";
import { isQuestion } from "../../components/decision_text";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { WaitActions } from "../../components/wait_actions";
import { matchText, waitText } from "../../components/wait_text";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./span_detail.module.css";
import type { Span } from "./trace";
import { useWait } from "./use_wait";

/** Properties of an InterruptDetail. */
export interface InterruptDetailProps {
  threadId: string;
  span: Span;
}

/** How an interrupt was decided, and by whom; or its decision, or what it waits for. */
export function InterruptDetail({ threadId, span }: InterruptDetailProps) {
  const client = useClient();
  const wait = useWait(threadId, span);
  if (!wait) return <DecisionDetail threadId={threadId} span={span} />;
  const match = matchText(wait);
  return (
    <section aria-label="Wait" className={styles.part}>
      <h3>Waits {safeText(waitText(wait, wait.until))}</h3>
      {match !== "" && <p className="muted">where {safeText(match)}</p>}
      <p><Countdown to={wait.until} event={wait.kind === "timer" ? "continues" : "stops waiting"} /></p>
      <WaitActions wait={wait} decide={(decision) => client.decide(threadId, wait.id, decision)} />
    </section>
  );
}

function DecisionDetail({ threadId, span }: InterruptDetailProps) {
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
  const [wasOpen, setWasOpen] = useState(isOpen); // the outcome of an own decision stays
  if (isOpen && !wasOpen) setWasOpen(true);
  const decide = async (decision: DecisionValue) => {
    try {
      return await client.decide(threadId, interruptId!, decision);
    } finally {
      void approval.refetch();
    }
  };
  return (
    <section aria-label="Decision" className={styles.part}>
      <h3>{isOpen ? "Waits for a decision" : "Decision"}</h3>
      {message !== undefined && <p>{safeText(message)}</p>}
      {isOpen && approvers.length > 0 && <p className="muted">May decide: {safeText(approvers.join(", "))}</p>}
      {isOpen && approval.data && !isQuestion(approval.data) && <Arguments value={approval.data.args} isTruncated={approval.data.argsTruncated} />}
      {wasOpen && approval.data && <Decision approval={approval.data} isOpen={isOpen} decide={decide} />}
      {isOpen && approval.data && <p><Link href={paths.approval(threadId, approval.data.id)}>Open in the inbox</Link></p>}
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
