import { type Accepted, type Decision as DecisionValue, type Remember, ProblemError } from "@perdure/client";
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
import { useShortcuts } from "./shortcuts";
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

type Panel = "none" | "edit" | "reject";

/** Decides an approval or answers a question, and tells what became of the decision. */
export function Decision({ approval, isOpen = true, canDecide = true, isRecordShown = false, decide, hasShortcuts = false }: DecisionProps) {
  const [panel, setPanel] = useState<Panel>("none");
  const container = useRef<HTMLDivElement>(null);
  const sent = useMutation({
    mutationFn: decide,
    onSettled: (accepted, error) => {
      // A refusal of what was entered keeps the form.
      if (error instanceof ProblemError && error.status === 422) return;
      const hadFocus = container.current?.contains(document.activeElement);
      setPanel("none");
      if (hadFocus) container.current?.focus();
      announce(accepted ? (accepted.missing ? "Your vote counts" : decidedText(String(accepted.decision))) : "The decision was refused");
    },
  });
  const problem = sent.error instanceof ProblemError && sent.error.status === 422 ? <Problem error={sent.error} /> : undefined;
  const isSettled = sent.isSuccess && !sent.data.missing || recordedIn(sent.error) !== undefined && (sent.error as ProblemError).code !== "other_edit";
  const isOvertaken = !isOpen && !sent.isPending && !isSettled && panel !== "none";
  const form = { isPending: sent.isPending || isOvertaken, onCancel: () => setPanel("none"), problem };
  const open = (next: Panel) => {
    sent.reset();
    setPanel(next);
  };
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
      {isOpen && canDecide && !isSettled && panel === "none" && (isQuestion(approval) ? <Answer {...choices} problem={problem} /> : <Choices {...choices} />)}
    </div>
  );
}

interface ChoicesProps {
  approval: Decidable;
  isPending: boolean;
  hasShortcuts: boolean;
  onDecide: (decision: DecisionValue) => void;
  onOpen: (panel: Panel) => void;
}

const noShortcuts: [] = [];

// How long an approval must be shown before a key approves it, in milliseconds. An earlier key may have been meant for the
// approval that was shown before it.
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

function Answer({ approval, isPending, hasShortcuts, onDecide, onOpen, problem }: ChoicesProps & { problem: React.ReactNode }) {
  const form = useRef<HTMLDivElement>(null);
  const decline = () => onOpen("reject");
  useShortcuts("Question", hasShortcuts ? [
    { keys: "a", label: "Answer", run: () => form.current?.querySelector<HTMLElement>("input, textarea, button, select")?.focus() },
    { keys: "r", label: "Decline", run: decline },
  ] : noShortcuts);
  return (
    <div ref={form}>
      {problem}
      <SchemaForm schema={approval.responseSchema} submitLabel="Answer" isPending={isPending} onSubmit={(content) => onDecide({ decision: "answer", content })}>
        <Button kind="danger" isDisabled={isPending} onPress={decline}>Decline</Button>
      </SchemaForm>
    </div>
  );
}
