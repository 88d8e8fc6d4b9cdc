import { useState } from "react";
import { safeText } from "./safe_text";
import styles from "./json_view.module.css";

/** Properties of a JSONView. */
export interface JSONViewProps {
  value: unknown;
  /** How many levels are open at first. */
  depth?: number;
}

// A level shows this many entries, and more on request: content of a thread may be huge.
const pageSize = 100;
const longestString = 2_000;

/** JSON as a tree whose levels open and close. */
export function JSONView({ value, depth = 2 }: JSONViewProps) {
  return (
    <div className={styles.view}>
      <Value value={value} depth={depth} />
    </div>
  );
}

function Value({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const label = name === undefined ? null : <span className={styles.name}>{safeText(name)}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      <div className={styles.leaf}>
        {label}
        <Scalar value={value} />
      </div>
    );
  }
  return <Level name={name} value={value} depth={depth} />;
}

function Level({ name, value, depth }: { name: string | undefined; value: object; depth: number }) {
  const [isOpen, setOpen] = useState(depth > 0);
  const [shown, setShown] = useState(pageSize);
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const summary = isList ? `[ ${entries.length} ]` : `{ ${entries.length} }`;
  if (entries.length === 0) {
    return (
      <div className={styles.leaf}>
        {name !== undefined && <span className={styles.name}>{safeText(name)}: </span>}
        {isList ? "[]" : "{}"}
      </div>
    );
  }
  return (
    <details className={styles.level} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {name !== undefined && <span className={styles.name}>{safeText(name)}: </span>}
        <span className="muted">{summary}</span>
      </summary>
      {isOpen && (
        <div className={styles.entries}>
          {entries.slice(0, shown).map(([key, entry]) => <Value key={key} name={key} value={entry} depth={depth - 1} />)}
          {entries.length > shown && (
            <button type="button" className={styles.more} onClick={() => setShown(shown + pageSize)}>
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function Scalar({ value }: { value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string") return <span className={styles.scalar}>{String(value)}</span>;
  const isLong = value.length > longestString && !isWhole;
  return (
    <span className={styles.string}>
      {safeText(isLong ? value.slice(0, longestString) : value)}
      {isLong && (
        <button type="button" className={styles.more} onClick={() => setWhole(true)}>
          … {value.length - longestString} more characters
        </button>
      )}
    </span>
  );
}
