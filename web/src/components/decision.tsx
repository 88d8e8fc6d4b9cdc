import { type Accepted, ConnectionLostError, type Decision as DecisionValue, ProblemError } from "@perdure/client";
import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { announce } from "./announcer";
import { Answer, Choices, type Panel } from "./decision_choices";
import { EditForm, RejectForm } from "./decision_forms";
import { Overtaken, recordedIn, Refused, Taken } from "./decision_outcome";
import { type Decidable, decidedText, isQuestion } from "./decision_text";
import { Problem } from "./problem";
import { Sending } from "./sending";
import styles from "./decision.module.css";

/** Properties of a Decision. Give it the ID of the approval as its key. */
export interface DecisionProps {
  approval: Decidable;
  /** Whether the approval is open. The result of the caller's own decision stays afterward. Default true. */
  isOpen?: boolean;
  /** Whether the caller may decide. The result of the caller's own vote stays in any case. Default true. */
  canDecide?: boolean;
  /** Whether the page shows the recorded decision. Then this component does not show the result of the caller's own one. */
  isRecordShown?: boolean;
  /** Sends the decision. */
  decide: (decision: DecisionValue) => Promise<Accepted>;
  /** Whether the keys a, e and r decide. Only one Decision of a page may have them. */
  hasShortcuts?: boolean;
}

/** Decides an approval or answers a question, and tells what became of the decision. */
export function Decision({ approval, isOpen = true, canDecide = true, isRecordShown = false, decide, hasShortcuts = false }: DecisionProps) {
  const [panel, setPanel] = useState<Panel>("none");
  const container = useRef<HTMLDivElement>(null);
  const sent = useMutation({
    mutationFn: decide,
    onSettled: (accepted, error) => {
      if (canSendAgain(error)) return;
      const hadFocus = container.current?.contains(document.activeElement);
      setPanel("none");
      if (hadFocus) container.current?.focus();
      announce(accepted ? (accepted.missing ? "Your vote counts" : decidedText(String(accepted.decision))) : "The decision was refused");
    },
  });
  const problem = canSendAgain(sent.error) ? <Problem error={sent.error} /> : undefined;
  const isSettled = sent.isSuccess && !sent.data.missing || recordedIn(sent.error) !== undefined && (sent.error as ProblemError).code !== "other_edit";
  const isOvertaken = !isOpen && !sent.isPending && !isSettled && panel !== "none";
  // A decision that is on its way keeps its outcome.
  const show = (next: Panel) => {
    if (!sent.isPending) sent.reset();
    setPanel(next);
  };
  const cancel = () => {
    container.current?.focus({ preventScroll: true }); // what had the focus closes
    show("none");
  };
  const form = { isPending: sent.isPending || isOvertaken, onCancel: cancel, problem };
  const open = (next: Panel) => !sent.isPending && show(next);
  const choices = { approval, isPending: sent.isPending, hasShortcuts, onDecide: sent.mutate, onOpen: open };
  const label = isQuestion(approval) ? "Decline" : "Reject";
  return (
    <div ref={container} className={styles.decision} tabIndex={-1} role="group" aria-label="Decision">
      {sent.isSuccess && !(isRecordShown && isSettled && !sent.data.repeated) && <div className={styles.taken} data-decision={sent.data.decision}><Taken accepted={sent.data} /></div>}
      {sent.isError && problem === undefined && (
        <Refused error={sent.error} wanted={sent.variables} args={approval.args} onVote={(args) => sent.mutate({ decision: "edit", args })} />
      )}
      {isOvertaken && <Overtaken decision={approval.decisions?.at(-1)} />}
      {!isSettled && panel === "reject" && (
        <RejectForm {...form} label={label} onReject={(reason) => sent.mutate({ decision: "reject", ...(reason !== "" && { reason }) })} />
      )}
      {!isSettled && panel === "edit" && <EditForm {...form} args={approval.args} onEdit={(args) => sent.mutate({ decision: "edit", args })} />}
      {isOpen && canDecide && !isSettled && panel === "none" && <>{problem}{isQuestion(approval) ? <Answer {...choices} /> : <Choices {...choices} />}</>}
      {sent.isPending && <Sending />}
    </div>
  );
}

// Whether what was entered must be changed, or may be sent again. The form keeps it.
const canSendAgain = (error: unknown): boolean => error instanceof ConnectionLostError || (error instanceof ProblemError && error.status === 422);
