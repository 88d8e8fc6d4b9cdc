import type { Subagent } from "@perdure/client/react";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { elementID } from "./element_id";
import styles from "./side_panel.module.css";

/** The subagents and branches of a thread, as a tree. */
export function SubagentsPanel({ subagents }: { subagents: readonly Subagent[] }) {
  if (subagents.length === 0) {
    return <p className="muted">No subagents. An agent with <code>tools: ["agent:name"]</code> has some, and so have the steps <code>map</code> and <code>parallel</code> of a pipeline.</p>;
  }
  const ids = new Set(subagents.map(({ id }) => id));
  return <Level subagents={subagents} parents={subagents.filter(({ parentId }) => parentId === undefined || !ids.has(parentId))} />;
}

function Level({ subagents, parents }: { subagents: readonly Subagent[]; parents: readonly Subagent[] }) {
  return (
    <ul className={styles.items}>
      {parents.map((subagent) => {
        const children = subagents.filter(({ parentId }) => parentId === subagent.id);
        return (
          <li key={subagent.id}>
            <Row subagent={subagent} />
            {children.length > 0 && <div className={styles.nested}><Level subagents={subagents} parents={children} /></div>}
          </li>
        );
      })}
    </ul>
  );
}

function Row({ subagent: { id, name, status, toolCallId, error } }: { subagent: Subagent }) {
  const show = () => {
    const element = document.getElementById(elementID(toolCallId ?? id));
    element?.scrollIntoView({ block: "center" });
    element?.querySelector("summary")?.focus();
  };
  return (
    <div className={styles.subagent}>
      <button type="button" onClick={show}>{safeText(name)}</button>
      <Status value={status} />
      {error && <p className={styles.failure}>{safeText(error.message)}</p>}
    </div>
  );
}
