import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { createContext, use } from "react";
import { IconButton } from "./button";
import { ChevronIcon, ForwardIcon } from "./icons";
import styles from "./pipeline_graph.module.css";
import type { PlacedStep } from "./pipeline_layout";
import { type BranchState, countByStatus, type StepState } from "./pipeline_states";
import { Status } from "./status";
import { stepIcons } from "./step_icons";
import { Duration } from "./time";

/** Selects a step by the ID of its span. byKey: with the keyboard. */
export type PipelineSelect = (span: string, byKey: boolean) => void;

/** What the nodes of a graph can do. */
export interface PipelineActions {
  /** Absent: nothing can be selected. */
  select: PipelineSelect | undefined;
  selected: string | undefined;
  skippedText: string;
  toggle: (map: string) => void;
  showItem: (map: string, number: number) => void;
  itemOf: (map: string) => number | undefined;
}

/** The actions of the graph around a node. */
export const PipelineContext = createContext<PipelineActions | undefined>(undefined);

/** A node of the graph. */
export type PipelineNodeType = Node<{ placed: PlacedStep }, "step">;

/** A step in the graph: a button that selects its span, with the steps in it below. */
export function PipelineNode({ data: { placed } }: NodeProps<PipelineNodeType>) {
  const { shape, step, state } = placed;
  if (shape === "label") return <p className={styles.condition} title={placed.title}>{placed.title}</p>;
  const isMap = step.kind === "map";
  return (
    <div className={styles[shape]} data-status={state?.status} data-open={state?.span !== undefined || undefined}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <Handle type="target" id="left" position={Position.Left} isConnectable={false} />
      <div className={styles.row}>
        <StepButton placed={placed} />
        {isMap && <MapToggle placed={placed} />}
      </div>
      {isMap && placed.isOpen && placed.branches.length > 0 && <Items map={step.name ?? ""} branches={placed.branches} />}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
      <Handle type="source" id="right" position={Position.Right} isConnectable={false} />
    </div>
  );
}

function StepButton({ placed: { step, title, detail, state, branches } }: { placed: PlacedStep }) {
  const { select, selected } = use(PipelineContext)!;
  const Icon = stepIcons[step.kind]!;
  const span = state?.span;
  const content = (
    <>
      <span className={styles.icon}><Icon /></span>
      <span className={styles.text}>
        <span className={styles.name}>{title}{step.isConditional && <span className={styles.mark} title={step.when ?? "only under a condition"}>if</span>}</span>
        <span className={styles.detail}>{span?.otherRun !== undefined && `in ${span.otherRun} · `}{detail}</span>
      </span>
      {branches.length > 0 ? <Counts branches={branches} /> : state && <StepStatus state={state} />}
    </>
  );
  if (select === undefined) return <div className={styles.step}>{content}</div>;
  return (
    <button
      type="button" className={`${styles.step} nopan`} data-step aria-pressed={state !== undefined && state.scope.some(({ id }) => id === selected)} disabled={span === undefined}
      onClick={({ detail: clicks }) => span && select(span.id, clicks === 0)}
    >
      {content}
    </button>
  );
}

function StepStatus({ state: { status, span, scope, times } }: { state: StepState }) {
  const { skippedText } = use(PipelineContext)!;
  if (span === undefined) return <span className={styles.never}>{status === "skipped" ? skippedText : ""}</span>;
  return (
    <span className={styles.status}>
      {status === "finished" ? <span className={styles.time}><Duration from={scope[0]!.startedAt} to={span.endedAt} /><span className="visually-hidden"> finished</span></span> : <Status value={status} />}
      {times > 1 && <span className={styles.times} title={`It began ${times} times`}>{times}×</span>}
    </span>
  );
}

function Counts({ branches }: { branches: readonly BranchState[] }) {
  return <span className={styles.counts}>{countByStatus(branches).map(([status, count]) => <Status key={status} value={status} text={`${count}`} label={`${count} ${status}`} />)}</span>;
}

function MapToggle({ placed: { step, isOpen } }: { placed: PlacedStep }) {
  const { toggle } = use(PipelineContext)!;
  const name = step.name ?? "";
  return (
    <span className={`${styles.toggle} nopan`}>
      <IconButton label={isOpen ? `Close ${name}` : `Open ${name}`} aria-expanded={isOpen} onPress={() => toggle(name)}>
        {isOpen ? <ChevronIcon /> : <ForwardIcon />}
      </IconButton>
    </span>
  );
}

// A map may have thousands of items; those that need attention come first.
const mostItems = 40;

function Items({ map, branches }: { map: string; branches: readonly BranchState[] }) {
  const { itemOf, showItem, select } = use(PipelineContext)!;
  const current = itemOf(map) ?? (branches.find(({ status }) => status !== "finished") ?? branches[0])?.number;
  const shown = branches.length <= mostItems ? branches : [...branches.filter(({ status }) => status !== "finished"), ...branches.filter(({ status }) => status === "finished")].slice(0, mostItems);
  return (
    <div className={`${styles.items} nopan nowheel`} role="group" aria-label={`Items of ${map}`}>
      {shown.map(({ number, status, span }) => (
        <button
          key={span.id} type="button" className={styles.item} data-status={status} aria-pressed={number === current} aria-label={`Item ${number}, ${status}`} title={`Item ${number}: ${status}`}
          onClick={({ detail: clicks }) => { showItem(map, number); select?.(span.id, clicks === 0); }}
        >
          {number}
        </button>
      ))}
      {branches.length > shown.length && <span className={styles.more}>{branches.length - shown.length} more</span>}
    </div>
  );
}
