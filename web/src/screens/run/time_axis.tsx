import { memo, useRef } from "react";
import { useElementWidth } from "../../components/element_width";
import { durationText } from "../../components/time";
import { labeledTicks, type TimeScale } from "./time_scale";
import styles from "./timeline.module.css";

const percent = (fraction: number) => `${fraction * 100}%`;

/** The head of the timeline: the names of its columns, and the ticks of the time. */
export const TimeAxis = memo(function TimeAxis({ scale }: { scale: TimeScale }) {
  const axis = useRef<HTMLSpanElement>(null);
  const width = useElementWidth(axis);
  return (
    <div role="rowgroup" className={styles.head}>
      <div role="row" aria-rowindex={1} className={styles.columns}>
        <span role="columnheader" className={styles.column}>Span</span>
        <span role="columnheader" className={`${styles.column} ${styles.duration}`}>Duration</span>
        <span ref={axis} role="columnheader" className={`${styles.column} ${styles.axis}`} aria-label="Time">
          {labeledTicks(scale.ticks, width).map(({ at, label }) => <span key={`${at} ${label}`} aria-hidden="true" className={styles.tick} style={{ insetInlineStart: percent(at) }}>{label}</span>)}
          {scale.sections.map(({ isGap, start, end, from, to }) =>
            isGap && end - start > 0.02 ? (
              <span key={from} aria-hidden="true" className={styles.gapLabel} style={{ insetInlineStart: percent(start), width: percent(end - start) }} title={`${durationText(to - from)} of waiting, compressed`} />
            ) : null,
          )}
        </span>
      </div>
    </div>
  );
});

/** The lines of the ticks, and the compressed times, in the background of the rows. */
export const TimeGrid = memo(function TimeGrid({ scale }: { scale: TimeScale }) {
  return (
    <div className={styles.background} aria-hidden="true">
      {scale.ticks.map(({ at }) => <span key={at} className={styles.line} style={{ insetInlineStart: percent(at) }} />)}
      {scale.sections.map(({ isGap, start, end, from }) =>
        isGap ? <span key={from} className={styles.gap} style={{ insetInlineStart: percent(start), width: percent(end - start) }} /> : null,
      )}
    </div>
  );
});
