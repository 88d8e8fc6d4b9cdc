import type { TimeScale } from "./time_scale";
import styles from "./bar.module.css";
import { isWait, type Span } from "./trace";

interface BarProps {
  span: Span;
  /** Whether the span has children, which have the work. */
  isContainer: boolean;
  scale: TimeScale;
  now: number;
}

/** The time of a span on the axis, with its attempts. The table has the same as text, so the bar is for the eye only. */
export function Bar({ span, isContainer, scale, now }: BarProps) {
  const place = (from: string, to: string | undefined) => {
    const start = scale.positionOf(Date.parse(from));
    const end = scale.positionOf(to === undefined ? now : Date.parse(to));
    return { insetInlineStart: `${start * 100}%`, width: `${Math.max(0, end - start) * 100}%` };
  };
  const isThin = isContainer && span.kind !== "tool";
  const kind = isWait(span) ? "wait" : span.kind;
  if (!span.attempts || span.attempts.length < 2) {
    return <span aria-hidden="true" className={styles.bar} data-thin={isThin || undefined} data-kind={kind} data-status={span.status} style={place(span.startedAt, span.endedAt)} />;
  }
  return (
    <span aria-hidden="true" className={styles.group}>
      <span className={styles.pauses} style={place(span.startedAt, span.endedAt)} />
      {span.attempts.map(({ number, startedAt, endedAt, status }) => (
        <span key={number} className={styles.bar} data-kind={kind} data-status={status} style={place(startedAt, endedAt ?? (status === "running" ? undefined : startedAt))} />
      ))}
    </span>
  );
}
