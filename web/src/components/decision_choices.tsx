import type { Decision, Remember } from "@perdure/client";
import { useEffect, useRef, useState } from "react";
import { announce } from "./announcer";
import { Button } from "./button";
import { Choice } from "./choice";
import styles from "./decision.module.css";
import { type Decidable, hasArguments, isLimit, isSignOff } from "./decision_text";
import { SchemaForm } from "./schema_form";
import { useShortcuts } from "./shortcuts";

/** The form of a Decision that is open. */
export type Panel = "none" | "edit" | "reject";

/** Properties of Choices and of an Answer. */
export interface ChoicesProps {
  approval: Decidable;
  isPending: boolean;
  hasShortcuts: boolean;
  onDecide: (decision: Decision) => void;
  onOpen: (panel: Panel) => void;
}

const noShortcuts: [] = [];

// How long an approval must be shown before a key approves it, in milliseconds. An earlier key may have been meant for the
// approval that was shown before it.
const settlingTime = 600;

/** The buttons that decide an approval, and their keys. */
export function Choices({ approval, isPending, hasShortcuts, onDecide, onOpen }: ChoicesProps) {
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

/** The form that answers a question, and its keys. */
export function Answer({ approval, isPending, hasShortcuts, onDecide, onOpen }: ChoicesProps) {
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
