import { type Accepted, ConnectionLostError, type Decision as DecisionValue, type Remember, ProblemError } from "@perdure/client";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { announce } from "./announcer";
import { Button } from "./button";
import { Choice } from "./choice";
import { EditForm, RejectForm } from "./decision_forms";
import { Overtaken, recordedIn, Refused, Taken } from "./decision_outcome";
import { type Decidable, decidedText, hasArguments, isLimit, isQuestion, isSignOff } from "./decision_text";
import { Problem } from "./problem";
import { SchemaForm } from "./schema_form";
import { Sending } from "./sending";
import { useShortcuts } from "./shortcuts";
import styles from "./decision.module.css";

/** Properties of a Decision. Give it the ID of the approval as its key. */
export interface DecisionProps {
  approval: Decidable;
  /** Whether the approval still waits. The result of an own decision stays shown afterward. Default true. */
  isOpen?: boolean;
  /** Whether the caller may decide. The result of their own vote stays shown in any case. Default true. */
  canDecide?: boolean;
  /** Whether the page shows the recorded decision, so that this need not tell the result of an own one. */
  isRecordShown?: boolean;
  /** Sends the decision. */
  decide: (decision: DecisionValue) => Promise<Accepted>;
  /** Whether the keys a, e and r decide. Only one Decision of a page may have them. */
  hasShortcuts?: boolean;
}

type Panel = "none" | "edit" | "reject";

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
  const form = { isPending: sent.isPending || isOvertaken, onCancel: () => show("none"), problem };
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

interface ChoicesProps {
  approval: Decidable;
  isPending: boolean;
  hasShortcuts: boolean;
  onDecide: (decision: DecisionValue) => void;
  onOpen: (panel: Panel) => void;
}

const noShortcuts: [] = [];

// How long an approval must have been there before a key approves it, in milliseconds: a key that was meant for what was there
// before must not.
const settlingTime = 600;

function Choices({ approval, isPending, hasShortcuts, onDecide, onOpen }: ChoicesProps) {
  const [remember, setRemember] = useState("");
  const canEdit = hasArguments(approval);
  const [isEarly, setEarly] = useState(false);
  const appearedAt = useRef(0);
  useEffect(() => void (appearedAt.current = performance.now()), [hasShortcuts]);
  const approve = () => !isPending && onDecide({ decision: "approve", ...(remember !== "" && { remember: remember as Remember }) });
  const approveByKey = () => {
    if (performance.now() - appearedAt.current >= settlingTime) return approve();
    setEarly(true);
    announce(earlyText);
  };
  const edit = () => canEdit && onOpen("edit");
  const reject = () => onOpen("reject");
  useShortcuts("Approval", hasShortcuts ? [
    { keys: "a", label: "Approve", run: approveByKey, isFinal: true },
    ...(canEdit ? [{ keys: "e", label: "Edit the arguments, then approve", run: edit }] : []),
    { keys: "r", label: "Reject with a reason", run: reject },
  ] : noShortcuts);
  const hint = (key: string) => hasShortcuts && <kbd aria-hidden="true" className={styles.key}>{key}</kbd>;
  return (
    <div className={styles.actions}>
      <Button kind="primary" isDisabled={isPending} onPress={approve}>Approve {hint("a")}</Button>
      {canEdit && <Button isDisabled={isPending} onPress={edit}>Edit {hint("e")}</Button>}
      <Button kind="danger" isDisabled={isPending} onPress={reject}>Reject {hint("r")}</Button>
      {!isLimit(approval) && !isSignOff(approval) && (
        <div className={styles.remember}>
          <Choice label="What an approval covers" isLabelHidden options={coverages(approval.toolName)} value={remember} onChange={setRemember} />
        </div>
      )}
      {isEarly && !isPending && <p className={styles.early}>{earlyText}</p>}
    </div>
  );
}

const earlyText = "Not approved: this has only just appeared. Press a again to approve it.";

const coverages = (tool = "the tool") => [
  { id: "", label: "Only this call" },
  { id: "arguments", label: "Equal calls in this thread" },
  { id: "tool", label: `All calls of ${tool} in this thread` },
];

function Answer({ approval, isPending, hasShortcuts, onDecide, onOpen }: ChoicesProps) {
  const form = useRef<HTMLDivElement>(null);
  const decline = () => onOpen("reject");
  useShortcuts("Question", hasShortcuts ? [
    { keys: "a", label: "Answer", run: () => form.current?.querySelector<HTMLElement>("input, textarea, button, select")?.focus() },
    { keys: "r", label: "Decline", run: decline },
  ] : noShortcuts);
  return (
    <div ref={form}>
      <SchemaForm schema={approval.responseSchema} submitLabel="Answer" isPending={isPending} onSubmit={(content) => onDecide({ decision: "answer", content })}>
        <Button kind="danger" isDisabled={isPending} onPress={decline}>Decline</Button>
      </SchemaForm>
    </div>
  );
}
