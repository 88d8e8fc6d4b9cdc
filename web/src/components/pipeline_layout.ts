import { type BranchState, compensationKey, type PipelineStates, type PipelineStep, type Scope, type StepState } from "./pipeline_states";

/** What a node of the graph shows. */
export interface PlacedStep {
  id: string;
  /** `leaf`: a step. `group`: a step with steps in it. `label`: the condition of a case. */
  shape: "leaf" | "group" | "label";
  step: PipelineStep;
  title: string;
  /** What the step calls or asks, or how often it repeats. */
  detail: string;
  state: StepState | undefined;
  /** The items of a map. */
  branches: readonly BranchState[];
  isOpen: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
}

/** An arrow between two nodes. */
export interface PlacedArrow {
  id: string;
  from: string;
  to: string;
  /** `next`: the following step. `undo`, `error`: a compensation, steps after a failure. */
  kind: "next" | "undo" | "error";
  /** Whether the run has gone this way. */
  isTaken: boolean;
}

/** The nodes and arrows of a pipeline, and the size of the whole. */
export interface PipelineLayout {
  nodes: PlacedStep[];
  arrows: PlacedArrow[];
  width: number;
  height: number;
}

/** What the layout depends on besides the steps. */
export interface LayoutOptions {
  /** Absent: the graph of a definition, without a run. */
  states?: PipelineStates | undefined;
  /** Whether a map is open, by its name. */
  isOpen: (name: string) => boolean;
  /** The number of the item that an open map shows, by its name. */
  itemOf: (name: string) => number | undefined;
}

// Steps that are placed, with the horizontal position of the axis on which the sequence goes down.
interface Block extends PipelineLayout {
  axis: number;
  anchor: string;
}

const leaf = { width: 208, height: 46 };
const gap = { down: 26, across: 20, side: 62 };
const group = { pad: 14, head: 40, items: 40 };
const labelHeight = 26;

/** Places the steps of a pipeline: a sequence goes down, branches and cases are side by side. */
export function layoutPipeline(steps: readonly PipelineStep[], options: LayoutOptions): PipelineLayout {
  return new Layout(options).sequence(steps, undefined, 0);
}

/** Returns the label of a case of a route: its condition, if the caller may read it. */
export function caseTitle({ cases = [] }: PipelineStep, index: number): string {
  const hasConditions = cases.some(({ when }) => when !== undefined);
  return cases[index]?.when ?? (hasConditions ? "otherwise" : `case ${index + 1}`);
}

class Layout {
  constructor(private readonly options: LayoutOptions) {}

  sequence(steps: readonly PipelineStep[], within: Scope | undefined, depth: number, prefix = ""): Block {
    const blocks = steps.map((step) => this.step(step, within, depth, prefix));
    const axis = Math.max(0, ...blocks.map((block) => block.axis));
    const right = Math.max(0, ...blocks.map((block) => block.width - block.axis));
    const all: Block = { nodes: [], arrows: [], width: axis + right, height: 0, axis, anchor: blocks[0]?.anchor ?? "" };
    markSkipped(blocks);
    let before: Block | undefined;
    for (const block of blocks) {
      if (before !== undefined) {
        all.height += gap.down;
        all.arrows.push(arrow(before.anchor, block.anchor, "next", stateOf(block)));
      }
      append(all, block, axis - block.axis, all.height);
      all.height += block.height;
      before = block;
    }
    return all;
  }

  private step(step: PipelineStep, within: Scope | undefined, depth: number, prefix: string): Block {
    const state = this.options.states?.state(step.name ?? prefix, within);
    const block = this.body(step, state, within, depth, prefix);
    const sides: { block: Block; kind: "undo" | "error" }[] = [];
    if (step.onError && step.onError.length > 0) sides.push({ block: this.sequence(step.onError, within, depth), kind: "error" });
    const undoing = step.compensate && this.compensation(step, within, depth);
    if (undoing) sides.push({ block: undoing, kind: "undo" });
    let x = block.width + gap.side;
    for (const side of sides) {
      block.arrows.push(arrow(block.anchor, side.block.anchor, side.kind, stateOf(side.block)));
      append(block, side.block, x, 0);
      x += side.block.width + gap.side;
      block.width = x - gap.side;
      block.height = Math.max(block.height, side.block.height);
    }
    return block;
  }

  // In the graph of a run, a compensation is shown when it runs.
  private compensation({ name = "", compensate }: PipelineStep, within: Scope | undefined, depth: number): Block | undefined {
    const key = compensationKey(name);
    if (this.options.states && this.options.states.state(key, within).span === undefined) return undefined;
    return this.step({ ...compensate!, name: undefined } as PipelineStep, within, depth, key);
  }

  private body(step: PipelineStep, state: StepState | undefined, within: Scope | undefined, depth: number, prefix: string): Block {
    const id = step.name ?? prefix; // unique in the tree
    const branches = state && step.kind === "map" ? this.options.states!.branches(state) : [];
    const isOpen = step.kind !== "map" || this.options.isOpen(step.name ?? prefix);
    const node: PlacedStep = {
      id, step, state, branches, isOpen, depth, shape: "leaf", title: step.name ?? "undo " + prefix.split("/").at(-2), detail: this.detail(step, state),
      x: 0, y: 0, width: leaf.width, height: leaf.height,
    };
    const inner = isOpen ? this.inner(step, branches, state?.span ? state.scope : within, depth + 1, id) : undefined;
    if (inner === undefined) return { nodes: [node], arrows: [], width: node.width, height: node.height, axis: node.width / 2, anchor: id };
    const head = group.head + (branches.length > 0 ? group.items : 0);
    const width = Math.max(inner.width, headWidth(node)) + 2 * group.pad;
    const height = head + inner.height + group.pad;
    const block: Block = { nodes: [{ ...node, shape: "group", width, height }], arrows: [], width, height, axis: width / 2, anchor: id };
    append(block, inner, (width - inner.width) / 2, head);
    return block;
  }

  private inner(step: PipelineStep, branches: readonly BranchState[], within: Scope | undefined, depth: number, id: string): Block | undefined {
    switch (step.kind) {
      case "parallel": return this.columns((step.steps ?? []).map((branch) => this.step(branch, within, depth, "")));
      case "route": return this.columns((step.cases ?? []).map((_, i) => this.case(step, i, within, depth, id)));
      case "map": {
        const number = this.options.itemOf(step.name ?? "");
        const item = branches.find((branch) => branch.number === number) ?? branches.find(({ status }) => status !== "finished") ?? branches[0];
        return this.sequence(step.steps ?? [], item?.scope ?? within, depth);
      }
      case "loop": case "steps": return this.sequence(step.steps ?? [], within, depth);
    }
    return undefined;
  }

  private case(route: PipelineStep, index: number, within: Scope | undefined, depth: number, id: string): Block {
    const { steps } = route.cases![index]!;
    const title = caseTitle(route, index);
    const block = this.sequence(steps, within, depth);
    const width = Math.max(block.width, leaf.width);
    const all: Block = { nodes: [], arrows: [], width, height: labelHeight, axis: width / 2, anchor: block.anchor };
    all.nodes.push({
      id: `${id}/case ${index}`, shape: "label", step: route, title, detail: "", state: undefined, branches: [], isOpen: true,
      x: (width - leaf.width) / 2, y: 0, width: leaf.width, height: labelHeight, depth,
    });
    append(all, block, (width - block.width) / 2, labelHeight);
    all.height += block.height;
    return all;
  }

  private columns(blocks: readonly Block[]): Block {
    const all: Block = { nodes: [], arrows: [], width: 0, height: 0, axis: 0, anchor: blocks[0]?.anchor ?? "" };
    for (const block of blocks) {
      if (all.width > 0) all.width += gap.across;
      append(all, block, all.width, 0);
      all.width += block.width;
      all.height = Math.max(all.height, block.height);
    }
    all.axis = all.width / 2;
    return all;
  }

  private detail(step: PipelineStep, state: StepState | undefined): string {
    switch (step.kind) {
      case "agent": return step.agent === undefined ? "agent" : `agent ${step.agent}`;
      case "tool": return step.tool === undefined ? "tool" : step.tool;
      case "approve": return "approval";
      case "set": return "changes the state";
      case "map": return step.items === undefined ? "for each item" : `for each of ${step.items}`;
      case "loop": {
        const round = state?.span && this.options.states!.round(step.steps ?? [], state);
        const until = step.until === undefined ? "" : ` until ${step.until}`;
        return round ? `round ${round} of at most ${step.max}` : `at most ${step.max} rounds${until}`;
      }
      case "parallel": return "in parallel";
      case "route": return "first case that applies";
    }
    return "";
  }
}

// The width of the head of a group without its padding, for a text in the size of the node's.
function headWidth({ title, detail, state }: PlacedStep): number {
  return Math.min(380, Math.max(leaf.width, 40 + title.length * 8 + detail.length * 6.2 + (state?.span ? 64 : 0)));
}

function arrow(from: string, to: string, kind: PlacedArrow["kind"], state: StepState | undefined): PlacedArrow {
  return { id: `${from} ${kind} ${to}`, from, to, kind, isTaken: state?.span !== undefined };
}

// A step that has not begun is skipped if a later one of its sequence has begun.
function markSkipped(blocks: readonly Block[]): void {
  let isPassed = false;
  for (const block of blocks.toReversed()) {
    const anchor = block.nodes.find(({ id }) => id === block.anchor);
    if (isPassed && anchor?.state?.status === "pending") anchor.state = { ...anchor.state, status: "skipped" };
    isPassed ||= anchor?.state?.span !== undefined;
  }
}

const stateOf = (block: Block) => block.nodes.find(({ id }) => id === block.anchor)?.state;

function append(all: Block, block: Block, x: number, y: number): void {
  for (const node of block.nodes) all.nodes.push({ ...node, x: node.x + x, y: node.y + y });
  all.arrows.push(...block.arrows);
}
