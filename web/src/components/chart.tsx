import { useId, useState } from "react";
import styles from "./chart.module.css";
import { ChartPlot } from "./chart_plot";
import { ChartValues } from "./chart_values";

/** A series of values, one for each label of the chart; null = there is none. */
export interface Series {
  label: string;
  color: "blue" | "green" | "red" | "amber" | "violet" | "gray";
  values: readonly (number | null)[];
}

/** Properties of a Chart. */
export interface ChartProps {
  title: string;
  /** The value in large type, such as a total. */
  summary?: string;
  /** A sentence below the chart. */
  note?: string;
  /** Series of bars are stacked. */
  kind: "bars" | "line";
  labels: readonly string[];
  series: readonly Series[];
  /** The text of a value, with its unit. */
  format: (value: number) => string;
  /** The end of the axis. Default: a round value above the largest one. */
  most?: number;
}

/** A small chart. The pointer or the arrow keys read its values, and a table has all of them. */
export function Chart({ title, summary, note, kind, labels, series, format, most }: ChartProps) {
  const heading = useId();
  const [active, setActive] = useState<number>();
  const isEmpty = series.every(({ values }) => values.every((value) => value === null || value === 0));
  const top = most ?? roundTop(largest(kind, labels.length, series));
  return (
    <figure className={styles.chart} aria-labelledby={heading}>
      <figcaption className={styles.caption}>
        <span id={heading} className={styles.title}>{title}</span>
        {summary !== undefined && <span className={`${styles.summary} number`}>{summary}</span>}
      </figcaption>
      <div className={styles.body}>
        <div className={`${styles.scale} number`} aria-hidden="true">
          <span>{isEmpty ? "" : format(top)}</span>
          <span>{isEmpty ? "" : format(top / 2)}</span>
          <span>0</span>
        </div>
        <ChartPlot {...{ title, kind, labels, series, format, top, active }} onActive={setActive} />
        <div className={styles.foot} aria-hidden="true">
          <span>{labels[0]}</span>
          <strong>{active === undefined ? isEmpty && "nothing yet" : labels[active]}</strong>
          <span>{labels.at(-1)}</span>
        </div>
      </div>
      <ul className={styles.legend} aria-hidden="true">
        {series.map(({ label, color, values }) => (
          <li key={label}>
            <span className={`${styles.swatch} ${styles[color]}`} />
            {label} {active !== undefined && <strong className="number">{values[active] == null ? "–" : format(values[active])}</strong>}
          </li>
        ))}
      </ul>
      {note !== undefined && <p className={styles.note}>{note}</p>}
      {!isEmpty && <ChartValues {...{ title, labels, series, format }} />}
    </figure>
  );
}

function largest(kind: ChartProps["kind"], count: number, series: readonly Series[]): number {
  const at = (i: number) => series.map(({ values }) => values[i] ?? 0);
  return Array.from({ length: count }, (_, i) => (kind === "bars" ? at(i).reduce((sum, value) => sum + value, 0) : Math.max(0, ...at(i)))).reduce((a, b) => Math.max(a, b), 0);
}

/** Returns the least of 2, 4, 10, 20, 40, … and of 1, 0.4, 0.2, 0.1, … that is no less than a value: its half is round, too. */
function roundTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const top = [1, 2, 4, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9))!;
  return top === 1 ? 2 : top;
}
