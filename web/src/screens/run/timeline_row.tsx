import { memo } from "react";
import { ChevronIcon, CrossIcon, DotIcon, RetryIcon, StopIcon, WaitIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { durationText, growingText } from "../../components/time";
import { Bar } from "./bar";
import { kindNames, SpanIcon } from "./span_icon";
import type { TimeScale } from "./time_scale";
import styles from "./timeline.module.css";
import { type Span, type SpanStatus, titleOf, type TreeNode } from "./trace";

/** The height of a row in pixels. */
export const rowHeight = 30;

/** The ID of the row of a span in the document. */
export const rowId = (span: string) => `span-${span}`;

const statusIcons: Partial<Record<SpanStatus, () => React.JSX.Element>> = { running: DotIcon, waiting: WaitIcon, failed: CrossIcon, cancelled: StopIcon };

interface TimelineRowProps {
  node: TreeNode;
  index: number;
  scale: TimeScale;
  now: number;
  isSelected: boolean;
  isOpen: boolean;
  onSelect: (id: string) => void;
  toggle: (id: string) => void;
}

/** A span of the timeline: its place in the tree, its duration and its bar. */
export const TimelineRow = memo(function TimelineRow({ node, index, scale, now, isSelected, isOpen, onSelect, toggle }: TimelineRowProps) {
  const { span, children, parent, level } = node;
  const siblings = parent?.children;
  return (
    <div
      role="row"
      id={rowId(span.id)}
      className={styles.row}
      style={{ transform: `translateY(${index * rowHeight}px)` }}
      aria-rowindex={index + 2}
      aria-level={level}
      aria-setsize={siblings?.length ?? 1}
      aria-posinset={(siblings?.indexOf(node) ?? 0) + 1}
      aria-expanded={children.length > 0 ? isOpen : undefined}
      aria-selected={isSelected}
      data-kind={span.kind}
      data-status={span.status}
      onClick={() => onSelect(span.id)}
      onDoubleClick={() => children.length > 0 && toggle(span.id)}
    >
      <span role="gridcell" className={styles.name}>
        <span className={styles.indent} style={{ width: (level - 1) * 16 }} />
        <span
          className={styles.disclosure}
          data-open={isOpen || undefined}
          onClick={(event) => {
            event.stopPropagation();
            toggle(span.id);
          }}
        >
          {children.length > 0 && <ChevronIcon />}
        </span>
        <span className={styles.kind}><SpanIcon kind={span.kind} /></span>
        <Name span={span} />
      </span>
      <span role="gridcell" className={`${styles.duration} number`}>{durationOf(span, now)}</span>
      <span role="gridcell" className={styles.track}><Bar span={span} isContainer={children.length > 0} scale={scale} now={now} /></span>
    </div>
  );
});

function Name({ span }: { span: Span }) {
  const StatusIcon = statusIcons[span.status];
  const attempts = span.retry?.attempt ?? span.attempts?.length ?? 1;
  return (
    <>
      <span className={`truncate ${styles.title}`}>
        {safeText(titleOf(span))} <span className="visually-hidden">{kindNames[span.kind]}, {span.status}</span>
      </span>
      {StatusIcon && <span className={styles.status} data-status={span.status}><StatusIcon /></span>}
      {attempts > 1 && (
        <span className={styles.attempts} title={`${attempts} attempts`}>
          <RetryIcon />
          {attempts}
          <span className="visually-hidden"> attempts</span>
        </span>
      )}
    </>
  );
}

function durationOf({ startedAt, endedAt }: Span, now: number): string {
  const start = Date.parse(startedAt);
  return endedAt === undefined ? growingText(now - start) : durationText(Math.max(0, Date.parse(endedAt) - start));
}
