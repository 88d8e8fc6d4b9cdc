import type { Approval, Decision as DecisionValue } from "@perdure/client";
import { useInbox } from "@perdure/client/react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Countdown } from "../../components/countdown";
import { Arguments } from "../../components/decision_arguments";
import { Decision } from "../../components/decision";
import { decidedStatus, decidedText, isQuestion } from "../../components/decision_text";
import { Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { Time } from "../../components/time";
import { useClient } from "../../session";
import { titleOf } from "./approval_title";
import { Conversation } from "./conversation";
import { Facts } from "./facts";
import { NotMine } from "./not_mine";
import { DecisionRecord, History } from "./history";
import type { ShownApproval } from "./use_approvals";
import { exclusionOf, useCaller } from "./use_caller";
import { useEndAnnouncement } from "./use_end_announcement";
import { useForgetMine } from "./use_mine";
import { Votes } from "./votes";
import styles from "./approval_detail.module.css";

/** The ID of the heading of the detail, to which the keyboard goes when an approval is opened. */
export const detailHeading = "approval";

/** Properties of an ApprovalDetail. */
export interface ApprovalDetailProps {
  shown: ShownApproval;
  /** Whether it waits for the user of the page; undefined until that is known. */
  isMine: boolean | undefined;
  hasShortcuts: boolean;
}

/** Everything about one approval, and its decision. */
export function ApprovalDetail({ shown, ...rest }: ApprovalDetailProps) {
  const { approval, isOpen, isLoading, isReadable, error } = shown;
  if (isLoading) return <Loading />;
  if (approval === undefined) return <div className={styles.problem}><Problem error={error ?? new Error("The approval is unknown.")} /></div>;
  return <Detail key={approval.id} approval={approval} isOpen={isOpen} isReadable={isReadable} {...rest} />;
}

interface DetailProps {
  approval: Approval;
  isOpen: boolean;
  isReadable: boolean | undefined;
  isMine: boolean | undefined;
  hasShortcuts: boolean;
}

function Detail({ approval, isOpen, isReadable, isMine, hasShortcuts }: DetailProps) {
  const { store } = useInbox(useClient());
  const queries = useQueryClient();
  const forgetMine = useForgetMine();
  const caller = useCaller();
  const [isOwn, setOwn] = useState(false); // the decision
  const last = approval.decisions.at(-1);
  const args = !isOpen && last?.decision === "edit" && last.args !== undefined ? last.args : approval.args;
  const [wasOpen, setWasOpen] = useState(isOpen);
  if (isOpen && !wasOpen) setWasOpen(true);
  useEndAnnouncement(approval, isOpen, caller);
  const decide = async (decision: DecisionValue) => {
    try {
      const accepted = await store.decide(approval, decision);
      forgetMine(approval.id);
      if (!accepted.missing && !accepted.repeated) setOwn(true);
      return accepted;
    } finally {
      void queries.invalidateQueries({ queryKey: ["approval", approval.threadId, approval.id] });
    }
  };
  return (
    <div className={styles.detail}>
      <Heading approval={approval} isOpen={isOpen} />
      <div className={styles.columns}>
        <div className={styles.main}>
          {!isOpen && <DecisionRecord approval={approval} isOwn={isOwn} />}
          {!isQuestion(approval) && <section aria-label="Call"><Arguments value={args} isTruncated={approval.argsTruncated} /></section>}
          {wasOpen && (
            <div className={styles.decide}>
              {isOpen && isMine === false && <NotMine approval={approval} caller={caller} />}
              <Decision approval={approval} isOpen={isOpen} isRecordShown={!isOpen && last !== undefined} canDecide={exclusionOf(approval, caller) === undefined} decide={decide} hasShortcuts={hasShortcuts} />
            </div>
          )}
          {isOpen && <Votes approval={approval} />}
          <Conversation approval={approval} isReadable={isReadable} />
        </div>
        <div className={styles.aside}>
          <Facts approval={approval} isOpen={isOpen} />
          {approval.events && <History events={approval.events} />}
        </div>
      </div>
    </div>
  );
}

function Heading({ approval, isOpen }: { approval: Approval; isOpen: boolean }) {
  const title = titleOf(approval);
  const last = approval.decisions.at(-1);
  return (
    <header className={styles.heading}>
      <p className={styles.meta}>
        {isOpen || last === undefined ? <Status value={isOpen ? "open" : "decided"} /> : <Status value={decidedStatus(last.decision)} text={decidedText(last.decision)} />}
        <span>{safeText(approval.agent)}</span>
        <Time at={approval.requestedAt} />
        {isOpen && approval.escalatesAt !== undefined && <Countdown to={approval.escalatesAt} event="escalates" />}
        {isOpen && approval.expiresAt !== undefined && <Countdown to={approval.expiresAt} />}
      </p>
      <h2 id={detailHeading} tabIndex={-1}>{safeText(title)}</h2>
      {title !== approval.message && <p className={styles.message}>{safeText(approval.message)}</p>}
    </header>
  );
}
