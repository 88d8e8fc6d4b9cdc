import { awaitedBy } from "@perdure/client";
import type { OpenInterrupt } from "@perdure/client/react";
import { Countdown } from "../../components/countdown";
import { Arguments } from "../../components/decision_arguments";
import { Decision } from "../../components/decision";
import { type Decidable, isQuestion } from "../../components/decision_text";
import { safeText } from "../../components/safe_text";
import { useConversation } from "./conversation_context";
import styles from "./interrupt_view.module.css";
import { WaitView } from "./wait_view";

/** Properties of an InterruptView. */
export interface InterruptViewProps {
  interrupt: OpenInterrupt;
  /** The arguments of its call, until the inbox has the approval. */
  args?: unknown;
  toolName?: string;
  /** Whether it stands alone, instead of in its tool call. */
  hasFrame?: boolean;
}

/** An approval, a question or a wait that is open, with what decides it. */
export function InterruptView({ interrupt, args, toolName, hasFrame = false }: InterruptViewProps) {
  const { store, firstInterrupt } = useConversation();
  const wait = awaitedBy(interrupt);
  if (wait) return <WaitView interrupt={interrupt} wait={wait} hasFrame={hasFrame} />;
  const { approval } = interrupt;
  const decidable: Decidable = approval ?? decidableOf(interrupt, args, toolName);
  const { quorum = 1, decisions = [] } = decidable;
  const isAsked = isQuestion(decidable);
  return (
    <section className={`${styles.interrupt} ${hasFrame ? styles.framed : ""}`} aria-label={isAsked ? "Question" : "Approval"}>
      <p className={styles.message}>{safeText(interrupt.message ?? "")}</p>
      {!isAsked && decidable.args !== undefined && <Arguments value={decidable.args} isTruncated={decidable.argsTruncated} />}
      {(quorum > 1 || interrupt.expiresAt) && (
        <p className={styles.terms}>
          {quorum > 1 && <span>{decisions.length} of {quorum} approvals</span>}
          {interrupt.expiresAt && <Countdown to={interrupt.expiresAt} />}
        </p>
      )}
      <Decision key={interrupt.id} approval={decidable} decide={(decision) => store.decide(interrupt.id, decision)} hasShortcuts={interrupt.id === firstInterrupt} />
    </section>
  );
}

function decidableOf({ id, reason, responseSchema, metadata }: OpenInterrupt, args: unknown, toolName: string | undefined): Decidable {
  const { step } = (metadata?.["perdure.approval"] ?? {}) as { step?: string };
  return {
    id, ...(reason !== undefined && { reason }), ...(responseSchema !== undefined && { responseSchema }), ...(step !== undefined && { step }),
    ...(args !== undefined && { args }), ...(toolName !== undefined && { toolName }),
  };
}
