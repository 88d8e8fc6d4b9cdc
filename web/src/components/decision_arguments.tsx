import { useState } from "react";
import { IconButton } from "./button";
import { announce } from "./announcer";
import { CopyIcon } from "./icons";
import { JSONView } from "./json_view";
import { safeText } from "./safe_text";
import styles from "./decision.module.css";

/** Properties of Arguments. */
export interface ArgumentsProps {
  value: unknown;
  /** The inbox omits arguments that are too large. */
  isTruncated?: boolean | undefined;
}

/** The arguments of a call: a table of their members, or a tree if a member has members. */
export function Arguments({ value, isTruncated = false }: ArgumentsProps) {
  const [isTree, setTree] = useState(false);
  if (isTruncated) return <p className="muted">The arguments are too large for the inbox. The thread shows them.</p>;
  const members = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
  if (value === undefined || members?.length === 0) return <p className="muted">The call has no arguments.</p>;
  const copy = () => void navigator.clipboard.writeText(JSON.stringify(value, null, 2)).then(() => announce("Copied"));
  const isNested = members?.some(([, member]) => typeof member === "object" && member !== null) ?? false;
  return (
    <div className={styles.arguments}>
      <div className={styles.argumentTools}>
        {isNested && (
          <button type="button" className={styles.toggle} aria-pressed={isTree} onClick={() => setTree(!isTree)}>Tree</button>
        )}
        <IconButton label="Copy the arguments" onPress={copy}><CopyIcon /></IconButton>
      </div>
      {members && !isTree ? <Members members={members} /> : <div className={styles.tree}><JSONView value={value} depth={4} /></div>}
    </div>
  );
}

function Members({ members }: { members: [string, unknown][] }) {
  return (
    <table className={styles.members} aria-label="Arguments">
      <tbody>
        {members.map(([name, member]) => (
          <tr key={name}>
            <th scope="row" className="mono">{safeText(name)}</th>
            <td>{typeof member === "object" && member !== null ? <JSONView value={member} depth={2} /> : <span className={styles.scalar}>{safeText(String(member))}</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
