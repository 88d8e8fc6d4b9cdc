import { useState } from "react";
import { ForwardIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { CallStatus } from "./call_status";
import { WorkView } from "./entry_view";
import styles from "./tool_call.module.css";
import type { Work } from "./transcript";

/** A branch of a pipeline, with what it has done. It is open until it has finished, unless the reader chooses. */
export function Branch({ work }: { work: Work }) {
  const { subagent } = work;
  const [choice, setChoice] = useState<boolean>();
  const isOpen = choice ?? subagent.status !== "finished";
  return (
    <details className={styles.call} open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && setChoice(event.currentTarget.open)}>
      <summary>
        <span className={styles.chevron}><ForwardIcon /></span>
        <span className={`mono ${styles.name}`}>{safeText(subagent.name)}</span>
        <span className={styles.preview} />
        <CallStatus value={subagent.status} />
      </summary>
      {isOpen && <div className={styles.body}><WorkView work={work} /></div>}
    </details>
  );
}
