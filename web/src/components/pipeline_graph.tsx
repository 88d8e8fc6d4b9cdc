import "@xyflow/react/dist/base.css";
import { type Edge, MarkerType, Panel, ReactFlow, ReactFlowProvider, useReactFlow, useStore } from "@xyflow/react";
import { type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { IconButton } from "./button";
import { PlusIcon } from "./icons";
import { layoutPipeline, type PipelineLayout } from "./pipeline_layout";
import { PipelineContext, PipelineNode, type PipelineNodeType, type PipelineSelect } from "./pipeline_node";
import styles from "./pipeline_graph.module.css";
import { PipelineOutline } from "./pipeline_outline";
import { type PipelineSpan, PipelineStates, type PipelineStep } from "./pipeline_states";
import { FitIcon, MinusIcon } from "./step_icons";

/** Properties of a PipelineGraph. */
export interface PipelineGraphProps {
  label: string;
  steps: readonly PipelineStep[];
  /** The spans of a run, which give the steps their states. Absent: the graph of a definition. */
  spans?: readonly PipelineSpan[] | undefined;
  /** What is said of steps that the run has passed without them. Default "skipped". */
  skippedText?: string | undefined;
  selected?: string | undefined;
  /** Steps that have not begun cannot be selected. */
  onSelect?: PipelineSelect;
}

const nodeTypes = { step: PipelineNode };

/** The steps of a pipeline as a graph, with their states in a run. Load it lazily: React Flow is a chunk of its own. */
export default function PipelineGraph(props: PipelineGraphProps) {
  return <ReactFlowProvider><Graph {...props} /></ReactFlowProvider>;
}

function Graph({ label, steps, spans, skippedText = "skipped", selected, onSelect }: PipelineGraphProps) {
  const place = useRef<HTMLElement>(null);
  // The maps whose state differs from the default: closed in a run, open in a definition.
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [items, setItems] = useState<Readonly<Record<string, number>>>({});
  const states = useMemo(() => spans && new PipelineStates(spans), [spans]);
  const itemOf = useCallback((map: string) => items[map], [items]);
  const layout = useMemo(
    () => layoutPipeline(steps, { states, itemOf, isOpen: (map) => toggled.has(map) === (states !== undefined) }),
    [steps, states, itemOf, toggled],
  );
  const actions = useMemo(() => ({
    select: onSelect, selected, itemOf, skippedText,
    toggle: (map: string) => setToggled((before) => new Set(before.has(map) ? [...before].filter((name) => name !== map) : [...before, map])),
    showItem: (map: string, number: number) => setItems((before) => ({ ...before, [map]: number })),
  }), [onSelect, selected, itemOf, skippedText]);
  return (
    <PipelineContext value={actions}>
      <section ref={place} className={styles.graph} aria-label={label} onKeyDown={moveFocus} onScroll={({ target }) => (target as HTMLElement).scrollTo(0, 0)}>
        <ReactFlow
          nodes={nodesOf(layout)} edges={edgesOf(layout)} nodeTypes={nodeTypes} nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false}
          elementsSelectable={false} panOnScroll zoomOnScroll={false} zoomOnDoubleClick={false} minZoom={0.2} maxZoom={1.5}
          disableKeyboardA11y attributionPosition="bottom-left"
        >
          <Camera layout={layout} place={place} />
        </ReactFlow>
        <PipelineOutline steps={steps} states={states} skippedText={skippedText} />
      </section>
    </PipelineContext>
  );
}

function nodesOf({ nodes }: PipelineLayout): PipelineNodeType[] {
  return nodes.map((placed) => ({
    id: placed.id, type: "step", position: { x: placed.x, y: placed.y }, data: { placed }, width: placed.width, height: placed.height, zIndex: placed.depth * 2,
    style: { width: placed.width, height: placed.height, pointerEvents: "all" },
  }));
}

function edgesOf({ arrows }: PipelineLayout): Edge[] {
  return arrows.map(({ id, from, to, kind, isTaken }) => ({
    id, source: from, target: to, type: "smoothstep", zIndex: 40, focusable: false, className: `${styles[kind]} ${isTaken ? styles.taken : ""}`,
    ...(kind !== "next" && { sourceHandle: "right", targetHandle: "left", label: kind === "undo" ? "undo" : "on error", labelBgPadding: [3, 1] as [number, number] }),
    markerEnd: { type: MarkerType.ArrowClosed, width: 14, height: 14, color: isTaken ? "var(--text-muted)" : "var(--line-strong)" },
  }));
}

// Up and down move the focus between the steps, in their order.
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const direction = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (direction === undefined || !(event.target as HTMLElement).matches("[data-step]")) return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-step]:not(:disabled)")];
  all[all.indexOf(event.target as HTMLElement) + direction]?.focus({ preventScroll: true });
  event.preventDefault();
}

const margin = 28;
// So that the smallest targets have 24 pixels (WCAG 2.5.8).
const smallest = 0.8;

/** The buttons for the view. It shows the whole graph, or the beginning of one that would be too small to read. */
function Camera({ layout, place }: { layout: PipelineLayout; place: React.RefObject<HTMLElement | null> }) {
  const { setViewport, setCenter, getViewport, zoomIn, zoomOut } = useReactFlow();
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  const size = useRef(layout);
  size.current = layout;
  const fit = useCallback((least: number) => {
    const { width: w, height: h } = size.current;
    const zoom = Math.min(1, Math.max(least, Math.min((width - 2 * margin) / w, (height - 2 * margin) / h)));
    void setViewport({ zoom, x: Math.max(margin, (width - w * zoom) / 2), y: Math.max(margin, (height - h * zoom) / 2 > 90 ? 60 : (height - h * zoom) / 2) });
  }, [setViewport, width, height]);
  useEffect(() => {
    if (width > 0) fit(smallest);
  }, [fit, width]);
  useEffect(() => {
    // The step with the focus is in view.
    const reveal = ({ target }: FocusEvent) => {
      const node = (target as HTMLElement).closest<HTMLElement>(".react-flow__node");
      const placed = size.current.nodes.find(({ id }) => id === node?.dataset.id);
      if (!placed) return;
      const { x, y, zoom } = getViewport();
      const [left, top] = [placed.x * zoom + x, placed.y * zoom + y];
      if (left < 0 || top < 0 || left + leastWidth * zoom > width || top + leastHeight * zoom > height) void setCenter(placed.x + placed.width / 2, placed.y + leastHeight, { zoom });
    };
    const { current: section } = place;
    section?.addEventListener("focusin", reveal);
    return () => section?.removeEventListener("focusin", reveal);
  }, [place, getViewport, setCenter, width, height]);
  return (
    <Panel position="bottom-right" className={styles.camera!}>
      <IconButton label="Zoom in" onPress={() => void zoomIn()}><PlusIcon /></IconButton>
      <IconButton label="Zoom out" onPress={() => void zoomOut()}><MinusIcon /></IconButton>
      <IconButton label="Show the whole graph" onPress={() => fit(0.2)}><FitIcon /></IconButton>
    </Panel>
  );
}

const leastWidth = 208;
const leastHeight = 46;
