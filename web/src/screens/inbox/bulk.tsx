import type { Approval, BatchResult } from "@perdure/client";
import { useInbox } from "@perdure/client/react";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { announce } from "../../components/announcer";
import { Button } from "../../components/button";
import { isQuestion } from "../../components/decision_text";
import { Dialog, DialogActions } from "../../components/dialog";
import { Field } from "../../components/field";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { Sending } from "../../components/sending";
import { useClient } from "../../session";
import { summaryOf, titleOf } from "./approval_title";
import { BatchOutcome } from "./batch_outcome";
import styles from "./bulk.module.css";

/** What is decided for all selected approvals. */
export type BulkDecision = "approve" | "reject";

/** Properties of a BulkDialog. */
export interface BulkDialogProps {
  decision: BulkDecision;
  /** The selected approvals at the time of the command: the list does not change while it is read. */
  approvals: readonly Approval[];
  /** The titles of the threads, by ID. */
  titles: ReadonlyMap<string, string>;
  /** Called with the IDs that need no further decision. */
  onClose: (done: readonly string[]) => void;
}

const largestBatch = 100;

/** Asks once before it decides several approvals, and then shows the result of each. */
export function BulkDialog({ decision, approvals, titles, onClose }: BulkDialogProps) {
  const { store } = useInbox(useClient());
  const [reason, setReason] = useState("");
  // A question has no arguments that could be approved.
  const decidable = decision === "approve" ? approvals.filter((approval) => !isQuestion(approval)) : approvals;
  const left = approvals.length - decidable.length;
  const sent = useMutation({
    mutationFn: async () => {
      const results: BatchResult[] = [];
      for (let i = 0; i < decidable.length; i += largestBatch) {
        const batch = decidable.slice(i, i + largestBatch).map(({ threadId, id }) => ({ threadId, id, decision, ...(decision === "reject" && reason.trim() !== "" && { reason: reason.trim() }) }));
        results.push(...(await store.decideBatch(batch)));
      }
      return results;
    },
    onSuccess: (results) => announce(`${results.filter(({ status }) => status === 200).length} of ${results.length} decided`),
  });
  const close = () => onClose(sent.data?.filter(({ status, missing }) => (status === 200 && !missing) || status === 409 || status === 410).map(({ id }) => id) ?? []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    sent.mutate();
  };
  const verb = decision === "approve" ? "Approve" : "Reject";
  if (sent.data) {
    return (
      <Dialog title="Results" isOpen onClose={close}>
        <BatchOutcome approvals={decidable} results={sent.data} />
        <DialogActions><Button kind="primary" autoFocus onPress={close}>Done</Button></DialogActions>
      </Dialog>
    );
  }
  return (
    <Dialog title={`${verb} ${decidable.length} ${decision === "approve" ? "call" : "request"}${decidable.length === 1 ? "" : "s"}?`} isOpen onClose={close}>
      <form className={styles.form} onSubmit={submit}>
        <p className="muted">A decision cannot be undone.</p>
        <Summary approvals={decidable} titles={titles} />
        {left > 0 && <p>{left === 1 ? "A question is" : `${left} questions are`} left out: each needs an answer of its own.</p>}
        {decision === "reject" && <Field label="Reason" value={reason} onChange={setReason} autoFocus hint="All of the models receive it. You can leave it empty." />}
        {sent.isError && <Problem error={sent.error} />}
        {sent.isPending && <Sending />}
        <DialogActions>
          <Button onPress={close}>Cancel</Button>
          <Button type="submit" kind={decision === "approve" ? "primary" : "danger"} autoFocus={decision === "approve"} isDisabled={sent.isPending || decidable.length === 0}>
            {verb} {decidable.length}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

function Summary({ approvals, titles }: Pick<BulkDialogProps, "approvals" | "titles">) {
  return (
    <ul className={styles.summary} aria-label="Selected approvals" tabIndex={0}>
      {approvals.map((approval) => (
        <li key={approval.id}>
          <strong>{safeText(titleOf(approval))}</strong> <span className="mono muted">{safeText(summaryOf(approval))}</span> {titles.has(approval.threadId) && <span className="muted">{safeText(titles.get(approval.threadId)!)}</span>}
        </li>
      ))}
    </ul>
  );
}

/** The bar with what can be done with the selected approvals. */
export function SelectionBar({ count, onDecide, onClear }: { count: number; onDecide: (decision: BulkDecision) => void; onClear: () => void }) {
  return (
    <div className={styles.bar} role="toolbar" aria-label="Selected approvals">
      <strong>{count} selected</strong>
      <Button kind="primary" onPress={() => onDecide("approve")}>Approve</Button>
      <Button kind="danger" onPress={() => onDecide("reject")}>Reject</Button>
      <Button kind="quiet" onPress={onClear}>Clear</Button>
    </div>
  );
}
