import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "./button";
import { ArgumentsDiff } from "./decision_diff";
import { Field } from "./field";
import { JSONField } from "./json_field";
import { Unparsed } from "./json_schema";
import styles from "./decision.module.css";

/** Properties of a form of a decision. */
export interface DecisionFormProps {
  isPending: boolean;
  onCancel: () => void;
  /** Why the server refused it. */
  problem?: ReactNode;
}

// Escape closes a form, and Control+Enter sends it from a field of several lines.
function useFormKeys(submit: () => void, cancel: () => void) {
  return (event: React.KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      cancel();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    }
  };
}

/** Asks for the reason of a rejection. The model receives it. */
export function RejectForm({ label = "Reject", isPending, onCancel, problem, onReject }: DecisionFormProps & { label?: string; onReject: (reason: string) => void }) {
  const [reason, setReason] = useState("");
  const reject = () => !isPending && onReject(reason.trim());
  const press = useFormKeys(reject, onCancel);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    reject();
  };
  return (
    <form className={styles.form} onSubmit={submit} onKeyDown={press}>
      <Field label="Reason" value={reason} onChange={setReason} autoFocus hint="The model receives it, and may try something else. You can leave it empty." />
      {problem}
      <div className={styles.actions}>
        <Button type="submit" kind="danger" isDisabled={isPending}>{label}</Button>
        <Button kind="quiet" onPress={onCancel}>Back</Button>
      </div>
    </form>
  );
}

/** Edits the arguments of a call, and shows what differs before they are approved. */
export function EditForm({ args, isPending, onCancel, problem, onEdit }: DecisionFormProps & { args: unknown; onEdit: (args: unknown) => void }) {
  const [edited, setEdited] = useState(args);
  const isValid = edited !== undefined && !(edited instanceof Unparsed);
  const isSame = isValid && JSON.stringify(edited) === JSON.stringify(args);
  const approve = () => isValid && !isSame && !isPending && onEdit(edited);
  const press = useFormKeys(approve, onCancel);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    approve();
  };
  return (
    <form className={`${styles.form} ${styles.edit}`} onSubmit={submit} onKeyDown={press} ref={focusField}>
      <JSONField label="Edited arguments" initial={args} onChange={setEdited} error={edited === undefined ? "Enter the arguments as JSON." : undefined} />
      <div className={styles.review}>
        <h4>Changes</h4>
        {isValid ? <ArgumentsDiff before={args} after={edited} /> : <p className="muted">The text is not JSON yet.</p>}
        {problem}
        <div className={styles.actions}>
          <Button type="submit" kind="primary" isDisabled={!isValid || isSame || isPending}>Approve with changes</Button>
          <Button kind="quiet" onPress={onCancel}>Back</Button>
        </div>
      </div>
    </form>
  );
}

function focusField(form: HTMLFormElement | null): void {
  form?.querySelector("textarea")?.focus({ preventScroll: true });
  form?.scrollIntoView({ block: "nearest" });
}
