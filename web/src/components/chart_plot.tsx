import type { KeyboardEvent, PointerEvent } from "react";
import type { ChartProps, Series } from "./chart";
import styles from "./chart.module.css";

/** Properties of a ChartPlot. */
export interface ChartPlotProps extends Pick<ChartProps, "title" | "kind" | "labels" | "series" | "format"> {
  /** The end of the axis. */
  top: number;
  /** The index of the label whose values are read; undefined = none. */
  active: number | undefined;
  onActive: (index: number | undefined) => void;
}

const width = 320;
const height = 96;

/** The marks of a chart. It is a slider over the labels: the arrow keys tell the values of each. */
export function ChartPlot({ title, kind, labels, series, format, top, active, onActive }: ChartPlotProps) {
  const last = labels.length - 1;
  const read = active ?? last;
  const step = width / labels.length;
  const press = (event: KeyboardEvent) => {
    const next = { ArrowLeft: read - 1, ArrowDown: read - 1, ArrowRight: read + 1, ArrowUp: read + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    onActive(Math.min(last, Math.max(0, next)));
  };
  const move = ({ clientX, currentTarget }: PointerEvent) => {
    const { left, width: size } = currentTarget.getBoundingClientRect();
    onActive(Math.min(last, Math.max(0, Math.floor(((clientX - left) / size) * labels.length))));
  };
  return (
    <div
      className={styles.area} role="slider" tabIndex={0} aria-label={`${title} by day`} aria-valuemin={0} aria-valuemax={last} aria-valuenow={read} aria-valuetext={`${labels[read] ?? ""}: ${textAt(series, read, format)}`}
      onKeyDown={press} onPointerMove={move} onPointerLeave={() => onActive(undefined)} onFocus={() => onActive(read)} onBlur={() => onActive(undefined)}
    >
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" className={styles.plot} aria-hidden="true">
        {[0.5, height / 2, height - 0.5].map((y) => <line key={y} x1="0" y1={y} x2={width} y2={y} className={styles.axis} />)}
        {active !== undefined && <rect x={active * step} y="0" width={step} height={height} className={styles.active} />}
        {kind === "bars" ? <Bars count={labels.length} series={series} top={top} /> : <Lines count={labels.length} series={series} top={top} />}
      </svg>
    </div>
  );
}

function textAt(series: readonly Series[], index: number, format: (value: number) => string): string {
  return series.map(({ label, values }) => `${label} ${values[index] == null ? "none" : format(values[index])}`).join(", ");
}

interface MarksProps {
  count: number;
  series: readonly Series[];
  top: number;
}

function Bars({ count, series, top }: MarksProps) {
  const step = width / count;
  return Array.from({ length: count }, (_, i) => {
    let below = 0;
    return series.map(({ label, color, values }) => {
      const size = ((values[i] ?? 0) / top) * height;
      below += size;
      return size > 0 && <rect key={`${label} ${i}`} x={i * step + step * 0.14} y={height - below} width={step * 0.72} height={size} className={`${styles.mark} ${styles[color]}`} />;
    });
  });
}

function Lines({ count, series, top }: MarksProps) {
  const step = width / count;
  return series.map(({ label, color, values }) => {
    const points = values.flatMap((value, i) => (value === null ? [] : [{ x: (i + 0.5) * step, y: height - (value / top) * height }]));
    return (
      <g key={label} className={`${styles.line} ${styles[color]}`}>
        <polyline points={points.map(({ x, y }) => `${x},${y}`).join(" ")} />
        {points.map(({ x, y }) => <line key={x} x1={x} y1={y} x2={x} y2={y} className={styles.point} />)}
      </g>
    );
  });
}
