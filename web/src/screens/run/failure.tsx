import type { ReactNode } from "react";
import { safeText } from "../../components/safe_text";
import styles from "./failure.module.css";
import type { TraceError } from "./trace";

/** Properties of a Failure. */
export interface FailureProps {
  error: TraceError;
  /** `retrying`: another attempt follows. Default `failed`. */
  kind?: "failed" | "retrying";
  /** A line above the message. */
  title?: ReactNode;
  children?: ReactNode;
  /** Buttons and links. */
  actions?: ReactNode;
}

/** An error of a run, a span or an attempt, with what to do about it. */
export function Failure({ error, kind = "failed", title, children, actions }: FailureProps) {
  return (
    <div className={styles.failure} data-kind={kind}>
      <div className={styles.texts}>
        {title !== undefined && <p className={styles.title}>{title}</p>}
        <p className={styles.message}>
          {safeText(error.message || "No message.")} <code className={styles.code}>{safeText(error.code)}</code>
        </p>
        {error.hint && <p><strong>What to do:</strong> {safeText(error.hint)}</p>}
        {children !== undefined && <p>{children}</p>}
      </div>
      {actions !== undefined && <div className={styles.actions}>{actions}</div>}
    </div>
  );
}
