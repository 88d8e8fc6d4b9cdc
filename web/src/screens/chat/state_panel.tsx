import type { ThreadHook } from "@perdure/client/react";
import { useState } from "react";
import { JSONView } from "../../components/json_view";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import styles from "./side_panel.module.css";
import { type StateChange, useStateHistory } from "./use_state_history";

const pageSize = 50;

/** The state of the thread, and how it came about. exists: whether the server has the thread. */
export function StatePanel({ thread: { threadId, state, run }, exists }: { thread: ThreadHook<unknown>; exists: boolean }) {
  const { changes, error } = useStateHistory(exists ? threadId : undefined, state, run.status);
  const [shown, setShown] = useState(pageSize);
  const isEmpty = typeof state !== "object" || state === null || Object.keys(state).length === 0;
  return (
    <>
      <section className={styles.section}>
        <h3>Now</h3>
        {isEmpty && (typeof state !== "object" || state === null ? <JSONView value={state} /> : <p className="muted">The state is empty. Agents with <code>state</code> in their definition, and steps of pipelines, write it.</p>)}
        {!isEmpty && <JSONView value={state} depth={3} />}
      </section>
      {error !== undefined && <Problem error={error} />}
      {changes.length > 0 && (
        <section className={styles.section}>
          <h3>History, newest first</h3>
          <ol className={styles.items} aria-label="History of the state">
            {changes.slice(0, shown).map((change) => <li key={change.key}><Change change={change} /></li>)}
          </ol>
          {changes.length > shown && <button type="button" onClick={() => setShown(shown + pageSize)}>{changes.length - shown} more</button>}
        </section>
      )}
    </>
  );
}

const longestValue = 60;

// A patch of one scalar says it all in one line.
function operationText({ op, path, value }: { op: string; path: string; value?: unknown }): string {
  const text = value === undefined || (typeof value === "object" && value !== null) ? "" : JSON.stringify(value);
  return `${op} ${path || "/"}${text === "" ? "" : ` = ${text.length > longestValue ? `${text.slice(0, longestValue)} …` : text}`}`;
}

function Change({ change: { operations, snapshot, subagent } }: { change: StateChange }) {
  const [isOpen, setOpen] = useState(false);
  const what = operations ? operations.map(operationText).join(", ") : "whole state";
  return (
    <details className={styles.patch} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code className="truncate">{safeText(what)}</code>
        {subagent !== undefined && <span className="muted">subagent</span>}
      </summary>
      {isOpen && <JSONView value={operations ?? snapshot} depth={2} />}
    </details>
  );
}
