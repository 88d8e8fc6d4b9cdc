import type { Approval } from "@perdure/client";
import { Fragment, type ReactNode } from "react";
import { Link } from "wouter";
import { Countdown } from "../../components/countdown";
import { isQuestion } from "../../components/decision_text";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { paths } from "../../paths";
import styles from "./approval_detail.module.css";

/** Who may decide, who has contributed, and where the approval belongs. */
export function Facts({ approval, isOpen }: { approval: Approval; isOpen: boolean }) {
  const { approvers, contributors = [], escalations = 0, escalatesAt, expiresAt, notByRequester, quorum, requester, requestedAt, runId, step, threadId } = approval;
  const facts: [string, ReactNode][] = [
    ["May decide", <People key="approvers" names={approvers} none="Everyone who may decide in the thread" />],
    ["Needed", quorum > 1 ? `${quorum} people, for the same ${isQuestion(approval) ? "answer" : "arguments"}` : undefined],
    ["Not by", notByRequester ? "The contributors, even if they are approvers" : undefined],
    ["Contributors", contributors.length > 0 && <People key="contributors" names={contributors} none="" />],
    ["Requested", <>{requester ? <>by {safeText(requester)}, </> : null}<Time at={requestedAt} /></>],
    ["Expires", isOpen && (expiresAt !== undefined ? <Countdown to={expiresAt} isShort /> : "Never")],
    ["Escalates", isOpen && escalatesAt !== undefined && <Countdown key="escalates" to={escalatesAt} event="escalates" isShort />],
    ["Escalated", escalations > 0 && (escalations === 1 ? "Once: more people may decide" : `${escalations} times: more people may decide`)],
    ["Thread", <Link key="thread" href={paths.thread(threadId)}>{safeText(threadId)}</Link>],
    ["Run", <Link key="run" href={paths.run(threadId, runId)}>{safeText(runId)}</Link>],
    ["Step", step && step !== "~limit" && <code>{safeText(step)}</code>],
  ];
  return (
    <section aria-label="Details">
      <h3>Details</h3>
      <dl className={styles.facts}>
        {facts.filter(([, value]) => value).map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </section>
  );
}

// An approver is a subject or "role:name".
function People({ names, none }: { names: readonly string[]; none: string }) {
  if (names.length === 0) return none;
  return (
    <span className={styles.people}>
      {names.map((name) => <span key={name} className={styles.person}>{name.startsWith("role:") ? `anyone with the role ${safeText(name.slice(5))}` : safeText(name)}</span>)}
    </span>
  );
}
