import { type KeyboardEvent, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { Field } from "../../components/field";
import { Button } from "../../components/button";
import { useRowWindow } from "../../components/row_window";
import { useSearchParam } from "../../components/search_param";
import { useShortcuts } from "../../components/shortcuts";
import { Toggle } from "../../components/toggle";
import { useNow } from "./clock";
import { TimeAxis, TimeGrid } from "./time_axis";
import { timeScale } from "./time_scale";
import { rowAfter, rowsOf } from "./timeline_rows";
import { rowHeight, rowId, TimelineRow } from "./timeline_row";
import styles from "./timeline.module.css";
import type { Tree, TreeNode } from "./trace";

const headHeight = 30;

/** Properties of a Timeline. */
export interface TimelineProps {
  tree: Tree;
  /** The ID of the selected span. */
  selected: string;
  onSelect: (id: string) => void;
  /** Moves the focus to the details of the selected span. */
  onOpen: () => void;
}

/** The spans of a run as a tree, each with its bar on a common time axis. */
export function Timeline({ tree, selected, onSelect, onOpen }: TimelineProps) {
  const [waits, setWaits] = useSearchParam("waits");
  const [text, setText] = useState("");
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const hidesWaits = waits === "hidden";
  const wanted = useDeferredValue(text.trim().toLowerCase());
  const rows = useMemo(() => rowsOf(tree, { collapsed, hidesWaits, text: wanted }), [tree, collapsed, hidesWaits, wanted]);
  const search = useRef<HTMLDivElement>(null);
  const parents = () => new Set([...tree.byId.values()].filter(({ children, parent }) => parent && children.length > 0).map(({ span }) => span.id));
  const toggle = (id: string) => {
    const next = new Set(collapsed);
    if (!next.delete(id)) next.add(id);
    setCollapsed(next);
  };
  const toggleWaits = () => setWaits(hidesWaits ? "" : "hidden");
  useShortcuts("Timeline", [
    { keys: "/", label: "Search the spans", run: () => search.current?.querySelector("input")?.focus() },
    { keys: "w", label: "Hide waits, or show them", run: toggleWaits },
  ]);
  return (
    <div className={styles.timeline}>
      <div className={styles.toolbar} ref={search}>
        <Field label="Search the spans" isLabelHidden placeholder="Search the spans" value={text} onChange={setText} />
        <Toggle isOn={hidesWaits} onChange={toggleWaits}>Hide waits</Toggle>
        <Button kind="quiet" onPress={() => setCollapsed(collapsed.size > 0 ? new Set() : parents())}>{collapsed.size > 0 ? "Expand all" : "Collapse all"}</Button>
        <span className={styles.total}>{rows.length === tree.byId.size ? `${rows.length} spans` : `${rows.length} of ${tree.byId.size} spans`}</span>
      </div>
      <Grid {...{ tree, rows, selected, onSelect, onOpen, collapsed, toggle, hidesWaits }} />
    </div>
  );
}

interface GridProps extends TimelineProps {
  rows: readonly TreeNode[];
  collapsed: ReadonlySet<string>;
  toggle: (id: string) => void;
  hidesWaits: boolean;
}

// The focus stays on the grid, and aria-activedescendant names the selected row: rows out of view are not in the document.
function Grid({ tree, rows, selected, onSelect, onOpen, collapsed, toggle, hidesWaits }: GridProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const isActive = tree.roots.some(({ span }) => span.status === "running" || span.status === "waiting");
  const now = useNow(isActive);
  const scale = useMemo(() => timeScale(tree, now, hidesWaits ? "hidden" : "compressed"), [tree, now, hidesWaits]);
  const { first, end, show } = useRowWindow(scroller, rows.length, rowHeight, headHeight);
  const index = rows.findIndex(({ span }) => span.id === selected);
  const select = (next: number) => {
    const node = rows[next];
    if (node) onSelect(node.span.id);
  };
  // A span that the page has selected, such as the cause of a failure, comes into view.
  useEffect(() => {
    if (index >= 0) show(index);
  }, [selected, show]);
  const press = (event: KeyboardEvent) => {
    const node = rows[index];
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / rowHeight) - 2);
    const next = index < 0 && event.key.startsWith("Arrow") ? 0 : rowAfter(event.key, rows.length, index, page);
    if (next !== undefined) select(next);
    else if (node && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      const isOpen = !collapsed.has(node.span.id) && node.children.length > 0;
      if (event.key === "ArrowLeft" ? isOpen : !isOpen && node.children.length > 0) toggle(node.span.id);
      else if (event.key === "ArrowLeft") select(rows.indexOf(node.parent!));
      else if (isOpen) select(index + 1);
    } else if (node && event.key === "Enter") onOpen();
    else return;
    event.preventDefault();
  };
  // The selected row stays in the document, wherever the list is scrolled.
  const shown = Array.from({ length: end - first }, (_, i) => first + i);
  if (index >= 0 && (index < first || index >= end)) shown.push(index);
  return (
    <div className={styles.grid} ref={scroller} role="treegrid" aria-label="Spans of the run" aria-rowcount={rows.length + 1} aria-activedescendant={index >= 0 ? rowId(selected) : undefined} tabIndex={0} onKeyDown={press}>
      <TimeAxis scale={scale} />
      <div role="rowgroup" className={styles.rows} style={{ height: rows.length * rowHeight }}>
        <TimeGrid scale={scale} />
        {shown.map((at) => {
          const node = rows[at]!;
          const { id } = node.span;
          return <TimelineRow key={id} {...{ node, scale, now, onSelect, toggle }} index={at} isSelected={id === selected} isOpen={!collapsed.has(id)} />;
        })}
      </div>
    </div>
  );
}
