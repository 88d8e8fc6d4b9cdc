import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { Duration } from "../../components/time";
import styles from "./attempts.module.css";
import { Failure } from "./failure";
import { type Attempt, isSame, type TraceError, type Withdrawn } from "./trace";

/** The attempts of a call, each with its error and with what it had said. told: an error that is told elsewhere, and not again. */
export function Attempts({ attempts, told }: { attempts: readonly Attempt[]; told?: TraceError | undefined }) {
  if (attempts.length === 1 && !attempts[0]!.withdrawn && !attempts[0]!.wait) return null; // the error of the span has the same
  return (
    <section aria-label="Attempts" className={styles.attempts}>
      <h3>{attempts.length === 1 ? "Attempt" : `${attempts.length} attempts`}</h3>
      <ol className={styles.list}>
        {attempts.map((attempt, i) => (
          <li key={attempt.number} className={styles.attempt} data-status={attempt.status}>
            <p className={styles.head}>
              <strong>Attempt {attempt.number}</strong>
              <Status value={attempt.status} />
              {attempts.some(({ model }) => model !== attempt.model) && attempt.model !== undefined && <span>{safeText(attempt.model)}</span>}
              <span className="muted">{(attempt.endedAt !== undefined || attempt.status === "running") && <Duration from={attempt.startedAt} to={attempt.endedAt} />}</span>
            </p>
            {attempt.wait && (
              <p className="muted">
                Waited for a limit of the provider: <Duration from={attempt.wait.startedAt} to={attempt.wait.endedAt} />
              </p>
            )}
            {attempt.error && (isSame(attempt.error, attempts[i - 1]?.error ?? told) ? <p className="muted">The same error: <code>{safeText(attempt.error.code)}</code></p> : <Failure error={attempt.error} />)}
            {attempt.withdrawn && <Said withdrawn={attempt.withdrawn} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

// What an attempt had streamed. Clients have dropped it, so it is not part of the conversation.
function Said({ withdrawn }: { withdrawn: Withdrawn }) {
  const { text, reasoning, toolCalls = [], truncated } = withdrawn;
  return (
    <figure className={styles.withdrawn}>
      <figcaption>Said, and withdrawn</figcaption>
      {reasoning !== undefined && <p className={styles.reasoning}>{safeText(reasoning)}</p>}
      {text !== undefined && <p className={styles.text}>{safeText(text)}</p>}
      {toolCalls.map(({ name, arguments: args }, i) => (
        <p key={i} className={styles.call}>
          {safeText(name)}({safeText(args)})
        </p>
      ))}
      {truncated && <p className="muted">More was withdrawn. The trace keeps the beginning.</p>}
    </figure>
  );
}
