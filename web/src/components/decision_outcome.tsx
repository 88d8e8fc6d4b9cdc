import { type Accepted, AnsweredError, type Decision, ProblemError, type RecordedDecision, type Vote } from "@perdure/client";
import { Button } from "./button";
import { ArgumentsDiff } from "./decision_diff";
import { personText, verdictText } from "./decision_text";
import { JSONView } from "./json_view";
import { Problem } from "./problem";
import { safeText } from "./safe_text";
import { Time } from "./time";
import styles from "./decision.module.css";

/** Tells what became of a decision that the server has taken. */
export function Taken({ accepted }: { accepted: Accepted }) {
  const { missing = 0, repeated, recorded } = accepted;
  const decision = String(accepted.decision ?? "");
  if (missing > 0) {
    const people = missing === 1 ? "One more person" : `${missing} more people`;
    return <p>Your vote counts. {people} must {decision === "answer" ? "give the same answer" : "vote for the same arguments"}.</p>;
  }
  if (repeated && recorded) return <Recorded recorded={recorded} note="Your decision is the same." />;
  return <p>You {verdictText(decision)}.</p>;
}

/** Tells that others have decided while the caller was entering something. */
export function Overtaken({ decision }: { decision: Vote | undefined }) {
  const note = "What you entered is still here.";
  return (
    <div className={styles.conflict} role="alert">
      {decision === undefined ? <p>It was decided in the meantime. {note}</p> : <Recorded recorded={decision} note={note} />}
    </div>
  );
}

/** Tells who has decided what, and when. */
export function Recorded({ recorded, note }: { recorded: Omit<RecordedDecision, "id">; note?: string }) {
  const { decision, by, at, reason } = recorded;
  return (
    <p>
      {decision === "expire" ? "It has expired" : <><strong>{safeText(personText(by))}</strong> {verdictText(decision)}</>}
      {at !== undefined && <> <Time at={at} /></>}
      {reason ? <>: “{safeText(reason)}”</> : "."} {note}
    </p>
  );
}

/** Properties of Refused. */
export interface RefusedProps {
  error: unknown;
  /** What the caller wanted. It is shown, so that nothing that they have entered is lost. */
  wanted: Decision | undefined;
  /** The arguments of the model. */
  args: unknown;
  /** Votes for the edit of other approvers. */
  onVote: (args: unknown) => void;
}

/** Tells why the server has refused a decision: another one came first, or the caller may not make it. */
export function Refused({ error, wanted, args, onVote }: RefusedProps) {
  const recorded = recordedIn(error);
  if (recorded === undefined) return <Problem error={error} />;
  if ((error as ProblemError).code === "other_edit" && recorded.decision === "answer") {
    return (
      <div className={styles.conflict} role="alert">
        <p>Others have given another answer already. Give the same one, or decline.</p>
        <Lost wanted={wanted} />
      </div>
    );
  }
  if ((error as ProblemError).code === "other_edit") {
    return (
      <div className={styles.conflict} role="alert">
        <p>Others vote for an edit already. The votes must be for the same arguments:</p>
        <ArgumentsDiff before={args} after={recorded.args} />
        <Button onPress={() => onVote(recorded.args)}>Vote for this edit</Button>
        <Lost wanted={wanted} />
      </div>
    );
  }
  return (
    <div className={styles.conflict} role="alert">
      <Recorded recorded={recorded} note="Your decision came later, and changed nothing." />
      <Lost wanted={wanted} />
    </div>
  );
}

// What the caller has entered in vain.
function Lost({ wanted }: { wanted: Decision | undefined }) {
  const entered = wanted && ("args" in wanted ? wanted.args : "content" in wanted ? wanted.content : wanted.reason || undefined);
  if (entered === undefined) return null;
  return (
    <details>
      <summary>What you entered</summary>
      <JSONView value={entered} />
    </details>
  );
}

/** Returns the recorded decision of a refusal, if it has one: a 410 is a ProblemError. */
export function recordedIn(error: unknown): RecordedDecision | undefined {
  if (error instanceof AnsweredError) return error.recorded as RecordedDecision;
  return error instanceof ProblemError && error.status === 410 ? (error.problem.recorded as RecordedDecision | undefined) : undefined;
}
