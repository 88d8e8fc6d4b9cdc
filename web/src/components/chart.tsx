import { useId } from "react";
import styles from "./chart.module.css";

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
  /** The text of a value. */
  format: (value: number) => string;
  /** The end of the axis. Default: the largest value. */
  most?: number;
}

const width = 320;
const height = 96;

/** A small chart. Screen readers find its values as a table. */
export function Chart({ title, summary, note, kind, labels, series, format, most }: ChartProps) {
  const heading = useId();
  const top = most ?? Math.max(...labels.map((_, i) => (kind === "bars" ? sum(series.map(({ values }) => values[i] ?? 0)) : Math.max(0, ...series.map(({ values }) => values[i] ?? 0)))), 0);
  const isEmpty = series.every(({ values }) => values.every((value) => value === null || value === 0));
  return (
    <figure className={styles.chart} aria-labelledby={heading}>
      <figcaption className={styles.caption}>
        <span id={heading} className={styles.title}>{title}</span>
        {summary !== undefined && <span className={`${styles.summary} number`}>{summary}</span>}
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" className={styles.plot} aria-hidden="true">
        <line x1="0" y1={height - 0.5} x2={width} y2={height - 0.5} className={styles.axis} />
        {top > 0 && (kind === "bars" ? <Bars labels={labels} series={series} top={top} format={format} /> : <Lines labels={labels} series={series} top={top} format={format} />)}
      </svg>
      <div className={styles.foot} aria-hidden="true">
        <span>{labels[0]}</span>
        <span>{isEmpty ? "nothing yet" : `up to ${format(top)}`}</span>
        <span>{labels.at(-1)}</span>
      </div>
      {series.length > 1 && (
        <ul className={styles.legend} aria-hidden="true">{series.map(({ label, color }) => <li key={label}><span className={`${styles.swatch} ${styles[color]}`} />{label}</li>)}</ul>
      )}
      {note !== undefined && <p className={styles.note}>{note}</p>}
      <Values title={title} labels={labels} series={series} format={format} />
    </figure>
  );
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

type PlotProps = Pick<ChartProps, "labels" | "series" | "format"> & { top: number };

function Bars({ labels, series, top, format }: PlotProps) {
  const step = width / labels.length;
  return labels.map((label, i) => {
    let below = 0;
    return (
      <g key={label}>
        <title>{`${label}: ${series.map(({ label: name, values }) => `${name} ${format(values[i] ?? 0)}`).join(", ")}`}</title>
        <rect x={i * step} y="0" width={step} height={height} className={styles.hover} />
        {series.map(({ label: name, color, values }) => {
          const size = ((values[i] ?? 0) / top) * (height - 4);
          below += size;
          return size > 0 && <rect key={name} x={i * step + step * 0.14} y={height - below} width={step * 0.72} height={size} className={styles[color]} />;
        })}
      </g>
    );
  });
}

function Lines({ labels, series, top, format }: PlotProps) {
  const step = width / labels.length;
  const place = (value: number, i: number) => ({ x: (i + 0.5) * step, y: height - 2 - (value / top) * (height - 8) });
  return (
    <>
      {series.map(({ label, color, values }) => {
        const points = values.map((value, i) => (value === null ? null : place(value, i)));
        const drawn = points.filter((point) => point !== null);
        return (
          <g key={label} className={`${styles.line} ${styles[color]}`}>
            <polyline points={drawn.map(({ x, y }) => `${x},${y}`).join(" ")} />
            {drawn.map(({ x, y }) => <line key={x} x1={x} y1={y} x2={x} y2={y} className={styles.point} />)}
          </g>
        );
      })}
      {labels.map((label, i) => (
        <rect key={label} x={i * step} y="0" width={step} height={height} className={styles.hover}>
          <title>{`${label}: ${series.map(({ label: name, values }) => `${name} ${values[i] == null ? "–" : format(values[i])}`).join(", ")}`}</title>
        </rect>
      ))}
    </>
  );
}

function Values({ title, labels, series, format }: Pick<ChartProps, "title" | "labels" | "series" | "format">) {
  return (
    <div className="visually-hidden">
      <table>
        <caption>{title}</caption>
        <thead><tr><th scope="col">Period</th>{series.map(({ label }) => <th key={label} scope="col">{label}</th>)}</tr></thead>
        <tbody>
          {labels.map((label, i) => series.some(({ values }) => values[i] !== null && values[i] !== 0) && (
            <tr key={label}><th scope="row">{label}</th>{series.map(({ label: name, values }) => <td key={name}>{values[i] == null ? "none" : format(values[i])}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
