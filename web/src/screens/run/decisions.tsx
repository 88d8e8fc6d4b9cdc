import type { Trace } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import { useClient } from "../../session";
import styles from "./input_output.module.css";

/** The decisions with which a run began: those about the interrupts of the run that it continues. */
export function useDecisions({ threadId, continues }: Trace) {
  const client = useClient();
  return useQuery({
    queryKey: ["decisions", threadId, continues],
    enabled: continues !== undefined,
    queryFn: async ({ signal }) => {
      const found = [];
      for await (const approval of client.audit(threadId, {}, { signal })) if (approval.runId === continues && approval.decisions.length > 0) found.push(approval);
      return found;
    },
  });
}

/** The event that has started a run, or ended a wait. A large one that has ended a wait is known by its wait only. */
export function EventFacts({ content, at }: { content: unknown; at: string }) {
  const { id, source, type } = (content ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || typeof source !== "string") return <p><strong>event</strong> <Time at={at} /></p>;
  return <p><strong>event</strong> <code>{safeText(String(type))}</code> with the ID <code>{safeText(id)}</code>, from the source <code>{safeText(source)}</code> <Time at={at} /></p>;
}

/** Decisions as the input of a run. */
export function Decisions({ approvals }: { approvals: NonNullable<ReturnType<typeof useDecisions>["data"]> }) {
  return approvals.map(({ id, threadId, message, decisions }) => (
    <div key={id} className={styles.message}>
      <p><Link href={paths.approval(threadId, id)}>{safeText(message)}</Link></p>
      {decisions.map(({ decision, by, at, reason, channel, content }, i) => channel === "event" ? <EventFacts key={i} content={content} at={at} /> : (
        <p key={i}>
          <strong>{decision}</strong> {by !== undefined && <>by {safeText(by)}</>} <Time at={at} />
          {reason !== undefined && reason !== "" && <>: {safeText(reason)}</>}
        </p>
      ))}
    </div>
  ));
}
