import { type KeyboardEvent, memo, useRef } from "react";
import { useRowWindow } from "../../components/row_window";
import { safeText } from "../../components/safe_text";
import { durationText } from "../../components/time";
import styles from "./events.module.css";
import type { LoggedEvent } from "./run_events";
import { rowAfter } from "./timeline_rows";

const rowHeight = 26;
const headHeight = 28;

/** Properties of an EventList. */
export interface EventListProps {
  events: readonly LoggedEvent[];
  /** The start of the run, from which the times count. */
  startedAt: string;
  /** The cursor of the selected event. */
  selected: string;
  onSelect: (cursor: string) => void;
}

const rowId = (cursor: string) => `event-${cursor}`;

/** A table of events. Only the rows in view are in the document. */
export function EventList({ events, startedAt, selected, onSelect }: EventListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const { first, end, show } = useRowWindow(scroller, events.length, rowHeight, headHeight);
  const index = events.findIndex(({ cursor }) => cursor === selected);
  const press = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 2);
    const next = index < 0 && event.key.startsWith("Arrow") ? 0 : rowAfter(event.key, events.length, index, page);
    const found = next !== undefined && events[next];
    if (!found) return;
    event.preventDefault();
    onSelect(found.cursor);
    show(next);
  };
  const start = Date.parse(startedAt);
  const shown = Array.from({ length: end - first }, (_, i) => first + i);
  if (index >= 0 && (index < first || index >= end)) shown.push(index);
  return (
    <div ref={scroller} className={styles.grid} role="grid" aria-label="Events of the run" aria-rowcount={events.length + 1} aria-activedescendant={index >= 0 ? rowId(selected) : undefined} tabIndex={0} onKeyDown={press}>
      <div role="rowgroup" className={styles.head}>
        <div role="row" aria-rowindex={1} className={styles.columns}>
          <span role="columnheader">Time</span>
          <span role="columnheader">Type</span>
          <span role="columnheader">Content</span>
        </div>
      </div>
      <div role="rowgroup" className={styles.rows} style={{ height: events.length * rowHeight }}>
        {shown.map((at) => {
          const logged = events[at]!;
          return <EventRow key={logged.cursor} {...{ logged, start, onSelect }} index={at} isSelected={at === index} />;
        })}
      </div>
    </div>
  );
}

interface EventRowProps {
  logged: LoggedEvent;
  index: number;
  start: number;
  isSelected: boolean;
  onSelect: (cursor: string) => void;
}

const EventRow = memo(function EventRow({ logged: { cursor, event, count }, index, start, isSelected, onSelect }: EventRowProps) {
  const { timestamp } = event as { timestamp?: number };
  return (
    <div role="row" id={rowId(cursor)} className={styles.row} style={{ transform: `translateY(${index * rowHeight}px)` }} aria-rowindex={index + 2} aria-selected={isSelected} onClick={() => onSelect(cursor)}>
      <span role="gridcell" className="number muted" title={timestamp === undefined ? undefined : new Date(timestamp).toLocaleString()}>{timestamp === undefined ? "" : `+${durationText(Math.max(0, timestamp - start))}`}</span>
      <span role="gridcell" className={styles.type}>{safeText(event.type)}{count !== undefined && <span className="muted"> {count}×</span>}</span>
      <span role="gridcell" className="truncate">{safeText(summaryOf(event))}</span>
    </div>
  );
});

const told = ["delta", "toolCallName", "stepName", "content", "name", "message", "activityType", "role"];

// The member of an event that tells the most about it.
function summaryOf(event: LoggedEvent["event"]): string {
  for (const member of told) {
    const value = event[member];
    if (typeof value === "string" && value !== "") return value.slice(0, 300);
    if (value !== undefined && value !== null && value !== "") return JSON.stringify(value).slice(0, 300);
  }
  return "";
}
