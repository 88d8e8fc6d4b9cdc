import type { PendingMessage } from "@perdure/client/react";
import { useMutation } from "@tanstack/react-query";
import { useEffect } from "react";
import { announce } from "../../components/announcer";
import { StopIcon, WaitIcon } from "../../components/icons";
import { describe } from "../../components/problem";
import { useConversation } from "./conversation_context";
import styles from "./user_message.module.css";

/** Tells for what a message waits, and cancels it if that is possible. */
export function PendingNote({ pending }: { pending: PendingMessage }) {
  const { store, isUndecided } = useConversation();
  const text = textOf(pending, isUndecided);
  const cancel = useMutation({ mutationFn: () => store.cancelPending(pending.messageId) });
  useEffect(() => announce(text), [text]);
  const canCancel = pending.kind === "queued" && !pending.isCancelled;
  return (
    <p className={styles.note}>
      {pending.isCancelled ? <StopIcon /> : <WaitIcon />} {cancel.error ? describe(cancel.error).title : text}
      {canCancel && <button type="button" disabled={cancel.isPending} onClick={() => cancel.mutate()}>Do not answer it</button>}
    </p>
  );
}

function textOf({ kind, isCancelled }: PendingMessage, isUndecided: boolean): string {
  if (isCancelled) return "This message will not be answered.";
  if (kind === "steering") return "Waits for the next step of the run.";
  return `Waits for its turn: it is answered after the ${isUndecided ? "decision" : "active run"}.`;
}
