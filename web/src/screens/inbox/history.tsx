import type { Approval, Vote } from "@perdure/client";
import { Fragment } from "react";
import { ArgumentsDiff } from "../../components/decision_diff";
import { decidedText, personText, verdictText } from "../../components/decision_text";
import { JSONView } from "../../components/json_view";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import styles from "./approval_detail.module.css";

/** The decision of an approval: what, by whom, when, and why. An anonymous caller sees "You" for their own decision (`isOwn`). */
export function DecisionRecord({ approval, isOwn }: { approval: Approval; isOwn: boolean }) {
  const last = approval.decisions.at(-1);
  if (last === undefined) return null;
  return (
    <section aria-label="Recorded decision" className={styles.record}>
      <p className={styles.verdict}>
        {last.decision === "expire" ? <strong>It has expired</strong> : <span><strong>{last.by || !isOwn ? safeText(personText(last.by)) : "You"}</strong> {verdictText(last.decision)}</span>}
        <span className="muted"><Time at={last.at} />{channelText(last)}</span>
      </p>
      {last.reason && <blockquote className={styles.reason}>{safeText(last.reason)}</blockquote>}
      {last.decision === "edit" && last.args !== undefined && <ArgumentsDiff before={approval.args} after={last.args} />}
      {last.content !== undefined && <JSONView value={last.content} />}
      {last.truncated && <p className="muted">What was entered is too large for the inbox. The thread shows it.</p>}
      {last.remember && <p className="muted">It also covers {last.remember === "tool" ? "all further calls of the tool" : "further calls with equal arguments"} in this thread.</p>}
    </section>
  );
}

const channels: Record<string, string> = { link: "by link", cli: "on the command line", batch: "in a batch", input: "with an input" };

function channelText({ channel, issuer }: Vote): string {
  const text = channels[channel ?? ""];
  return text === undefined ? "" : `, ${text}${issuer ? ` that ${issuer} created` : ""}`;
}

const eventNames: Record<string, string> = { opened: "Opened", reminded: "Reminded", escalated: "Escalated", voted: "Voted", decided: "Decided", expired: "Expired" };

/** The audit of an approval: its events, in order. */
export function History({ events }: { events: NonNullable<Approval["events"]> }) {
  return (
    <section aria-label="History">
      <h3>History</h3>
      <ol className={styles.events}>
        {events.map(({ type, at, decisions = [] }, i) => (
          <li key={i}>
            <span>{eventNames[type] ?? type}</span>
            <span className="muted">
              {decisions.map((decision, j) => (
                <Fragment key={j}>{safeText(personText(decision.by))} {decidedText(decision.decision)} </Fragment>
              ))}
            </span>
            <Time at={at} />
          </li>
        ))}
      </ol>
    </section>
  );
}
