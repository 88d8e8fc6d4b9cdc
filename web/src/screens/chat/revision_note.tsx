import { safeText } from "../../components/safe_text";
import styles from "./status_line.module.css";

/** Properties of a RevisionNote. */
export interface RevisionNoteProps {
  agent: string;
  /** The revision of the address, or "". */
  revision: string;
  onReset: () => void;
}

const shownDigits = 12;

/** Tells that the messages of this page run another revision than the current one. */
export function RevisionNote({ agent, revision, onReset }: RevisionNoteProps) {
  if (revision === "") return null;
  return (
    <p className={styles.line} data-kind="revision">
      Messages of this page run the revision <code title={revision}>{safeText(revision.replace("tenant-", "").slice(0, shownDigits))}</code> of {safeText(agent)}. <button type="button" onClick={onReset}>Run the current one</button>
    </p>
  );
}
