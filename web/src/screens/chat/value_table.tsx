import { useState } from "react";
import { JSONView } from "../../components/json_view";
import { safeText } from "../../components/safe_text";
import styles from "./content_view.module.css";

/** A list of objects as rows. */
export interface ValueRows {
  columns: string[];
  rows: Record<string, unknown>[];
}

const mostColumns = 12;
const pageSize = 50;

/** Returns the rows of a list of objects with few members, or undefined. */
export function tableOf(value: unknown): ValueRows | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  if (!value.every((row) => typeof row === "object" && row !== null && !Array.isArray(row))) return undefined;
  const rows = value as Record<string, unknown>[];
  const columns = [...new Set(rows.slice(0, pageSize).flatMap((row) => Object.keys(row)))];
  return columns.length > 0 && columns.length <= mostColumns ? { columns, rows } : undefined;
}

/** A list of objects as a table. */
export function ValueTable({ columns, rows }: ValueRows) {
  const [shown, setShown] = useState(pageSize);
  return (
    <div className={styles.frame} role="region" aria-label="Result" tabIndex={0}>
      <table>
        <thead>
          <tr>{columns.map((column) => <th key={column} scope="col">{safeText(column)}</th>)}</tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row, i) => (
            <tr key={i}>{columns.map((column) => <Cell key={column} value={row[column]} />)}</tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <button type="button" className={styles.more} onClick={() => setShown(shown + pageSize)}>{rows.length - shown} more rows</button>
      )}
    </div>
  );
}

const longestCell = 300;

function Cell({ value }: { value: unknown }) {
  if (typeof value === "object" && value !== null) return <td><JSONView value={value} depth={0} /></td>;
  const text = value === undefined ? "" : String(value);
  return <td className={typeof value === "number" ? styles.numeric : undefined}>{safeText(text.length > longestCell ? `${text.slice(0, longestCell)} …` : text)}</td>;
}
