import { Link } from "wouter";
import { paths } from "../../paths";
import styles from "./agents.module.css";

/** Properties of a ToolList. */
export interface ToolListProps {
  tools: readonly string[];
  /** Tools that no worker has, and agents that are not published. */
  unavailable: readonly string[];
  /** The list shows this many; those that are unavailable come first. Default: all. */
  most?: number;
}

/** The tools of an agent. Subagents and agents of handoffs are links. */
export function ToolList({ tools, unavailable, most = Infinity }: ToolListProps) {
  if (tools.length === 0) return <span className="muted">none</span>;
  const sorted = [...unavailable, ...tools.filter((tool) => !unavailable.includes(tool))];
  return (
    <ul className={styles.tools}>
      {sorted.slice(0, most).map((tool) => (
        <li key={tool} className={unavailable.includes(tool) ? styles.unavailable : styles.tool}>
          <ToolName name={tool} />
          {unavailable.includes(tool) && <span className={styles.why}> unavailable</span>}
        </li>
      ))}
      {sorted.length > most && <li className="muted">{sorted.length - most} more</li>}
    </ul>
  );
}

function ToolName({ name }: { name: string }) {
  const [, agent] = /^(?:agent|handoff):(.+)$/.exec(name) ?? [];
  return agent === undefined ? <code>{name}</code> : <Link href={paths.agent(agent)}><code>{name}</code></Link>;
}
