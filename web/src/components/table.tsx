import type { ReactNode } from "react";
import styles from "./table.module.css";

/** A column of a Table. */
export interface Column<Row> {
  title: string;
  /** `end`: for numbers. */
  align?: "start" | "end";
  cell: (row: Row) => ReactNode;
}

/** Properties of a Table. */
export interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
}

/** A table. The first cell of a row has the link to what the row is about. */
export function Table<Row>({ label, columns, rows, keyOf }: TableProps<Row>) {
  return (
    <div className={styles.frame} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.table} aria-label={label}>
        <thead>
          <tr>{columns.map(({ title, align }) => <th key={title} scope="col" className={align === "end" ? styles.end : undefined}>{title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, align, cell }) => <td key={title} className={align === "end" ? `${styles.end} number` : undefined}>{cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
