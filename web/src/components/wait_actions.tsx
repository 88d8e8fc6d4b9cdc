import type { Accepted, AwaitedEnd, Decision } from "@perdure/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "./button";
import { confirm } from "./confirmation";
import { Dialog, DialogActions } from "./dialog";
import { Field } from "./field";
import { JSONField } from "./json_field";
import { Unparsed } from "./json_schema";
import { Problem } from "./problem";
import { Sending } from "./sending";
import { matchingData } from "./wait_text";
import styles from "./wait_actions.module.css";

/** Properties of WaitActions. */
export interface WaitActionsProps {
  wait: AwaitedEnd;
  /** Which wait it is, for screen readers, if the page has several. */
  name?: string;
  /** Sends the decision that ends the wait. */
  decide: (decision: Decision) => Promise<Accepted>;
}

/** The buttons that end a wait before its time. For an event, a person enters its data. */
export function WaitActions({ wait, name, decide }: WaitActionsProps) {
  const [dialog, setDialog] = useState<"continue" | "cancel">();
  const sent = useMutation({
    mutationFn: decide,
    onSuccess: (_, { decision }) => {
      setDialog(undefined);
      confirm(decision === "answer" ? "The run continues" : "The wait is cancelled");
    },
  });
  const open = (next: typeof dialog) => {
    sent.reset();
    setDialog(next);
  };
  const close = () => setDialog(undefined);
  const continueNow = () => (wait.kind === "event" ? open("continue") : sent.mutate({ decision: "answer", content: {} }));
  const suffix = name !== undefined && <span className="visually-hidden"> {name}</span>;
  const outcome = <>{sent.error && <Problem error={sent.error} />}{sent.isPending && <Sending />}</>;
  return (
    <div className={styles.wait} role="group" aria-label="Wait">
      <div className={styles.actions}>
        <Button onPress={continueNow} isDisabled={sent.isPending}>Continue now{suffix}</Button>
        <Button kind="quiet" onPress={() => open("cancel")} isDisabled={sent.isPending}>Cancel{suffix}</Button>
      </div>
      {dialog === undefined && outcome}
      {dialog === "continue" && <ContinueDialog wait={wait} isPending={sent.isPending} onClose={close} onContinue={(data) => sent.mutate({ decision: "answer", content: { data } })}>{outcome}</ContinueDialog>}
      {dialog === "cancel" && <CancelDialog isPending={sent.isPending} onClose={close} onCancel={(reason) => sent.mutate({ decision: "reject", ...(reason !== "" && { reason }) })}>{outcome}</CancelDialog>}
    </div>
  );
}

interface FormProps {
  isPending: boolean;
  onClose: () => void;
  children: React.ReactNode;
}

function ContinueDialog({ wait, isPending, onClose, onContinue, children }: FormProps & { wait: AwaitedEnd; onContinue: (data: unknown) => void }) {
  const [data, setData] = useState<unknown>(() => matchingData(wait));
  return (
    <Dialog title="Continue now" isOpen onClose={onClose}>
      <p>The run continues as if the event <code>{wait.event}</code> had arrived with these data.</p>
      <JSONField label="Data of the event" initial={data} onChange={setData} />
      {children}
      <DialogActions>
        <Button onPress={onClose}>Keep waiting</Button>
        <Button kind="primary" isDisabled={isPending || data instanceof Unparsed} onPress={() => onContinue(data ?? null)}>Continue</Button>
      </DialogActions>
    </Dialog>
  );
}

function CancelDialog({ isPending, onClose, onCancel, children }: FormProps & { onCancel: (reason: string) => void }) {
  const [reason, setReason] = useState("");
  return (
    <Dialog title="Cancel the wait?" isOpen onClose={onClose}>
      <p>The run goes on without what it waits for. A step of a pipeline fails. An agent is told that its wait has ended early.</p>
      <Field label="Reason" hint="Optional. The agent receives it." value={reason} onChange={setReason} />
      {children}
      <DialogActions>
        <Button onPress={onClose}>Keep waiting</Button>
        <Button kind="danger" isDisabled={isPending} onPress={() => onCancel(reason.trim())}>Cancel the wait</Button>
      </DialogActions>
    </Dialog>
  );
}
