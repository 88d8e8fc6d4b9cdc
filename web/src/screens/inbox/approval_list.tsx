import type { Approval } from "@perdure/client";
import { type MouseEvent, useState } from "react";
import { Link } from "wouter";
import { Button } from "../../components/button";
import { Countdown } from "../../components/countdown";
import { decidedStatus, decidedText, personText } from "../../components/decision_text";
import { VoteIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { Time } from "../../components/time";
import { summaryOf, titleOf, votesOf } from "./approval_title";
import { type Caller, hasVoted } from "./use_caller";
import { approvalPath, type Filter } from "./inbox_filter";
import styles from "./approval_list.module.css";

/** Properties of an ApprovalList. */
export interface ApprovalListProps {
  approvals: readonly Approval[];
  filter: Filter;
  current: string | undefined;
  /** The IDs of the open approvals that the caller may decide. */
  mine: ReadonlySet<string>;
  caller: Caller | undefined;
  /** The titles of the threads, by ID. */
  titles: ReadonlyMap<string, string>;
  /** The IDs of all open approvals. */
  open: ReadonlySet<string>;
  selected: ReadonlySet<string>;
  onSelect: (id: string) => void;
  /** Opens an approval whose link was followed. */
  onOpen: (approval: Approval) => void;
  onMore?: (() => void) | undefined;
}

// Rows beyond these are shown on request.
const pageSize = 200;

/** The approvals as a list of links. */
export function ApprovalList({ approvals, onMore, ...row }: ApprovalListProps) {
  const [shown, setShown] = useState(pageSize);
  const hidden = approvals.length - shown;
  const areAllMine = approvals.every(({ id }) => !row.open.has(id) || row.mine.has(id));
  return (
    <>
      <ul className={styles.list} aria-label="Approvals">
        {approvals.slice(0, shown).map((approval) => <Row key={approval.id} approval={approval} areAllMine={areAllMine} {...row} />)}
      </ul>
      {(hidden > 0 || onMore) && (
        <div className={styles.more}>
          <Button kind="quiet" onPress={() => (hidden > 0 ? setShown(shown + pageSize) : onMore?.())}>{hidden > 0 ? `Show more of ${approvals.length}` : "Older ones"}</Button>
        </div>
      )}
    </>
  );
}

type RowProps = { approval: Approval; areAllMine: boolean } & Omit<ApprovalListProps, "approvals" | "onMore">;

function Row({ approval, areAllMine, filter, current, mine, caller, titles, open, selected, onSelect, onOpen }: RowProps) {
  const title = safeText(titleOf(approval));
  const summary = safeText(summaryOf(approval));
  const isCurrent = approval.id === current;
  const isOpen = open.has(approval.id);
  const thread = titles.get(approval.threadId);
  const isVoted = isOpen && hasVoted(approval, caller);
  const follow = (event: MouseEvent) => {
    event.preventDefault();
    onOpen(approval);
  };
  return (
    <li className={styles.row} data-current={isCurrent || undefined} data-decided={!isOpen || isVoted || undefined}>
      {isOpen ? (
        <label className={styles.check}>
          <input type="checkbox" checked={selected.has(approval.id)} onChange={() => onSelect(approval.id)} aria-label={`Select ${title} ${summary}`} />
        </label>
      ) : (
        <span />
      )}
      <Link href={approvalPath(approval, filter)} className={styles.link} aria-current={isCurrent ? "true" : undefined} onClick={follow} data-approval={approval.id}>
        <span className={styles.line}>
          <strong className="truncate">{title}</strong>
          <span className={styles.age}><Time at={isOpen ? approval.requestedAt : (approval.decisions.at(-1)?.at ?? approval.requestedAt)} /></span>
        </span>
        {summary !== "" && <span className={`${styles.summary} truncate`}>{summary}</span>}
        <span className={styles.line}>
          <span className={`${styles.agent} truncate`}>{safeText(approval.agent)}{thread !== undefined && ` · ${safeText(thread)}`}</span>
          {isOpen ? <Marks approval={approval} mark={isVoted ? "you voted" : !areAllMine && mine.has(approval.id) ? "for you" : undefined} /> : <Outcome approval={approval} />}
        </span>
      </Link>
    </li>
  );
}

function Marks({ approval, mark }: { approval: Approval; mark: string | undefined }) {
  const { votes, quorum } = votesOf(approval);
  return (
    <span className={styles.marks}>
      {approval.expiresAt !== undefined && <Countdown to={approval.expiresAt} isShort />}
      {quorum > 1 && (
        <span className={styles.votes} title={`${votes} of ${quorum} votes`}>
          <VoteIcon />
          {votes}/{quorum}
          <span className="visually-hidden"> votes</span>
        </span>
      )}
      {mark !== undefined && <span className={styles.mine}>{mark}</span>}
    </span>
  );
}

function Outcome({ approval }: { approval: Approval }) {
  const last = approval.decisions.at(-1);
  if (last === undefined) return <Status value={approval.status ?? "decided"} />;
  const by = last.by === undefined || last.decision === "expire" ? "" : ` by ${safeText(personText(last.by))}`;
  return <Status value={decidedStatus(last.decision)} text={decidedText(last.decision) + by} />;
}
