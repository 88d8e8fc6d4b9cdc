import { Fragment } from "react";
import { type Change, changesOf } from "./decision_changes";
import { safeText } from "./safe_text";
import styles from "./decision.module.css";

/** The members in which edited arguments differ from those of the model. */
export function ArgumentsDiff({ before, after }: { before: unknown; after: unknown }) {
  const changes = changesOf(before, after);
  if (changes.length === 0) return <p className="muted">The arguments are those of the model.</p>;
  return (
    <dl className={styles.diff} aria-label="Changes of the arguments">
      {changes.map((change) => (
        <Fragment key={change.path.join("/")}>
          <dt className="mono">{safeText(change.path.join(".")) || "arguments"}</dt>
          <dd><Sides change={change} /></dd>
        </Fragment>
      ))}
    </dl>
  );
}

function Sides({ change }: { change: Change }) {
  return (
    <>
      {"before" in change && (
        <del className={styles.before}>
          <span className="visually-hidden">was </span>
          {sideText(change.before)}
        </del>
      )}
      {"after" in change ? (
        <ins className={styles.after}>
          <span className="visually-hidden">becomes </span>
          {sideText(change.after)}
        </ins>
      ) : (
        <span className="muted">removed</span>
      )}
    </>
  );
}

function sideText(value: unknown): string {
  if (typeof value === "string") return safeText(value);
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return safeText(value.join(", "));
  return safeText(JSON.stringify(value, null, 1) ?? "");
}
