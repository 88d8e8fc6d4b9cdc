import { type AwaitedEnd, type Decision } from "@perdure/client";
import type { OpenInterrupt } from "@perdure/client/react";
import { Countdown } from "../../components/countdown";
import { safeText } from "../../components/safe_text";
import { WaitActions } from "../../components/wait_actions";
import { WaitKindIcon } from "../../components/wait_icon";
import { matchText, waitText } from "../../components/wait_text";
import { useConversation } from "./conversation_context";
import styles from "./interrupt_view.module.css";

/** Properties of a WaitView. */
export interface WaitViewProps {
  interrupt: OpenInterrupt;
  wait: AwaitedEnd;
  /** Whether it stands alone, instead of in its tool call. */
  hasFrame: boolean;
}

/** A wait for a time or an event: what for, how long yet, and what ends it early. */
export function WaitView({ interrupt: { id, expiresAt }, wait, hasFrame }: WaitViewProps) {
  const { store } = useConversation();
  const match = matchText(wait);
  return (
    <section className={`${styles.interrupt} ${styles.wait} ${hasFrame ? styles.framed : ""}`} aria-label="Waiting">
      <p className={styles.message}><WaitKindIcon kind={wait.kind} /> Waits {safeText(waitText(wait, expiresAt))}</p>
      {match !== "" && <p className={styles.match}>where {safeText(match)}</p>}
      {expiresAt && <p className={styles.terms}><Countdown to={expiresAt} event={wait.kind === "timer" ? "continues" : "stops waiting"} /></p>}
      <WaitActions key={id} wait={wait} decide={(decision: Decision) => store.decide(id, decision)} />
    </section>
  );
}
