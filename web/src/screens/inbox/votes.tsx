import type { Approval, Vote } from "@perdure/client";
import { Arguments } from "../../components/decision_arguments";
import { ArgumentsDiff } from "../../components/decision_diff";
import { decidedText, isQuestion, personText } from "../../components/decision_text";
import { CheckIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import styles from "./approval_detail.module.css";

const proposals = { approve: "for the arguments of the model", edit: "for an edit", answer: "for the answer" };

/** The votes of an open approval with a quorum, by the arguments or the answer that they are for. */
export function Votes({ approval }: { approval: Approval }) {
  const { args, decisions, quorum, tallies = [] } = approval;
  if (quorum < 2) return null;
  const voted = tallies.filter(({ votes }) => votes > 0);
  return (
    <section aria-label="Votes">
      <h3>Votes</h3>
      {voted.length === 0 && <p className="muted">Nobody has voted yet. {quorum} people must {isQuestion(approval) ? "give the same answer" : "approve the same arguments"}.</p>}
      {voted.map(({ argsDigest, decision, votes, missing }) => {
        const votesFor = decisions.filter((vote) => vote.argsDigest === argsDigest);
        const edit = votesFor.find((vote) => vote.args !== undefined);
        return (
          <div key={argsDigest} className={styles.tally}>
            <p className={styles.score}>
              <Dots votes={votes} quorum={quorum} />
              <strong>{votes} of {quorum}</strong> {proposals[decision]}
              <span className="muted">, {missing} missing</span>
            </p>
            {decision === "answer" && <Arguments value={votesFor[0]?.content} isTruncated={votesFor[0]?.truncated} />}
            {edit && <ArgumentsDiff before={args} after={edit.args} />}
            <Voters votes={votesFor} />
          </div>
        );
      })}
    </section>
  );
}

function Dots({ votes, quorum }: { votes: number; quorum: number }) {
  return (
    <span className={styles.dots} aria-hidden="true">
      {Array.from({ length: quorum }, (_, i) => <span key={i} data-full={i < votes || undefined} />)}
    </span>
  );
}

function Voters({ votes }: { votes: readonly Vote[] }) {
  return (
    <ul className={styles.voters}>
      {votes.map((vote) => (
        <li key={vote.digest ?? vote.at}>
          <CheckIcon /> {safeText(personText(vote.by))} {decidedText(vote.decision)} <span className="muted"><Time at={vote.at} /></span>
        </li>
      ))}
    </ul>
  );
}
