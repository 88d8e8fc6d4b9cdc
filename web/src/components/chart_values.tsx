import type { ChartProps } from "./chart";
import styles from "./chart.module.css";

/** The values of a chart as a table, which opens. Labels without a value are missing. */
export function ChartValues({ title, labels, series, format }: Pick<ChartProps, "title" | "labels" | "series" | "format">) {
  const rows = labels.map((label, i) => ({ label, i })).filter(({ i }) => series.some(({ values }) => values[i] !== null && values[i] !== 0));
  return (
    <details className={styles.values}>
      <summary>Table<span className="visually-hidden"> of {title}</span></summary>
      <div className={styles.frame} role="region" aria-label={`Values of ${title}`} tabIndex={0}>
        <table>
          <caption className="visually-hidden">{title}</caption>
          <thead><tr><th scope="col">Day</th>{series.map(({ label }) => <th key={label} scope="col">{label}</th>)}</tr></thead>
          <tbody>
            {rows.map(({ label, i }) => (
              <tr key={label}><th scope="row">{label}</th>{series.map(({ label: name, values }) => <td key={name} className="number">{values[i] == null ? "none" : format(values[i])}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
