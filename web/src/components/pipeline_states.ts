import type { components } from "@perdure/client/openapi";

/** A step of a pipeline, as the API describes it. */
export type PipelineStep = components["schemas"]["Step"];

/** What a graph needs of a span of a run's trace. */
export interface PipelineSpan {
  id: string;
  parentId?: string | undefined;
  kind: string;
  name: string;
  status: string;
  startedAt: string;
  endedAt?: string | undefined;
  stepName?: string | undefined;
  /** The run of the span, such as "run 2", if it is not the run that the graph is of. */
  otherRun?: string | undefined;
}

/** How far a step has come. `skipped`: the run has passed it. `pending`: the run may still reach it. */
export type StepStatus = "pending" | "skipped" | "running" | "waiting" | "finished" | "failed" | "cancelled";

/**
 * The spans of one step, or of one item of a map, the latest last. There are several if a run ended while the step waited
 * for people: the run that continues it has begun the step again.
 */
export type Scope = readonly PipelineSpan[];

/** The state of a step in a run, or in an item of a map. */
export interface StepState {
  status: StepStatus;
  /** The latest span of the step; it is absent before the step begins. */
  span?: PipelineSpan | undefined;
  scope: Scope;
  /** How often the step has begun: in rounds of a loop, and attempts. */
  times: number;
}

/** An item of a map, or a branch of a parallel step. */
export interface BranchState {
  span: PipelineSpan;
  scope: Scope;
  /** The position of an item, from 0. */
  number: number;
  status: StepStatus;
}

const open = new Set<string>(["running", "waiting"]);

/** The states of all steps of a pipeline, by the spans of the traces of a run and of the runs that it continues. */
export class PipelineStates {
  private readonly children = new Map<string, PipelineSpan[]>();
  private readonly roots: PipelineSpan[] = [];
  // The spans that contain an interrupt which their run did not outlast. The run that continues it has begun them again.
  private readonly interrupted = new Set<PipelineSpan>();

  /** The spans of a run follow those of the run that it continues. */
  constructor(spans: readonly PipelineSpan[]) {
    for (const span of spans) {
      if (span.parentId === undefined) {
        this.roots.push(span);
        continue;
      }
      const siblings = this.children.get(span.parentId);
      if (siblings) siblings.push(span);
      else this.children.set(span.parentId, [span]);
    }
    this.findInterrupted(spans);
  }

  private findInterrupted(spans: readonly PipelineSpan[]): void {
    const byId = new Map(spans.map((span) => [span.id, span]));
    for (const interrupt of spans.filter(({ kind }) => kind === "interrupt")) {
      const around: PipelineSpan[] = [];
      for (let span: PipelineSpan | undefined = interrupt; span; span = span.parentId === undefined ? undefined : byId.get(span.parentId)) around.push(span);
      const run = around.at(-1)!;
      if (run.endedAt === undefined || (interrupt.endedAt !== undefined && Date.parse(interrupt.endedAt) <= Date.parse(run.endedAt))) continue;
      for (const span of around) this.interrupted.add(span);
    }
  }

  /** Returns the state of a step by its key: its name, or that of its step with "/compensate". A scope is that of an item of a map. */
  state(key: string, within: Scope = this.roots): StepState {
    const spans = within.flatMap((span) => this.find(key, span));
    const span = spans.at(-1);
    if (span === undefined) return { status: this.isOver(within.at(-1)) ? "skipped" : "pending", scope: [], times: 0 };
    let first = spans.length - 1;
    while (first > 0 && this.interrupted.has(spans[first - 1]!)) first--;
    const times = spans.filter((each, i) => !this.interrupted.has(each) || i === spans.length - 1).length;
    return { status: this.statusOf(span), span, scope: spans.slice(first), times };
  }

  /** Returns the items of a map, or the branches of a parallel step, of which the state is given. */
  branches({ scope }: StepState): BranchState[] {
    const found = new Map<number, PipelineSpan[]>();
    for (const { id } of scope) {
      for (const [i, branch] of (this.children.get(id) ?? []).filter(({ kind }) => kind === "branch").entries()) {
        const number = numberOf(branch, i);
        found.set(number, [...(found.get(number) ?? []), branch]);
      }
    }
    return [...found].map(([number, spans]) => ({ number, scope: spans, span: spans.at(-1)!, status: this.statusOf(spans.at(-1)!) })).sort((a, b) => a.number - b.number);
  }

  /** Returns in which round a loop is: the largest number of times that one of its inner steps has begun. */
  round(inner: readonly PipelineStep[], { scope }: StepState): number {
    return scope.length === 0 ? 0 : Math.max(0, ...inner.map(({ name = "" }) => this.state(name, scope).times));
  }

  // Nothing more begins in a span that is over.
  private isOver(span: PipelineSpan | undefined): boolean {
    if (span === undefined || open.has(span.status)) return false;
    return span.status !== "finished" || !this.interrupted.has(span);
  }

  // A span is waiting if something in it waits, and nothing in it runs.
  private statusOf(span: PipelineSpan): StepStatus {
    if (span.status !== "running") return span.status as StepStatus;
    const inner = (this.children.get(span.id) ?? []).filter(({ status }) => open.has(status)).map((child) => this.statusOf(child));
    return inner.length > 0 && inner.every((status) => status === "waiting") ? "waiting" : "running";
  }

  // The steps of a subagent are those of another agent.
  private find(key: string, within: PipelineSpan): PipelineSpan[] {
    const found: PipelineSpan[] = [];
    const visit = (span: PipelineSpan) => {
      for (const child of this.children.get(span.id) ?? []) {
        if (child.kind === "subagent") continue;
        if (child.kind === "step" && keyOf(child.stepName ?? child.name) === key) found.push(child);
        else visit(child);
      }
    };
    visit(within);
    return found;
  }
}

const undo = "/compensate";

/** Returns the key of a step by its name in the events of a run, which is a path. */
function keyOf(name: string): string {
  if (!name.endsWith(undo)) return name.slice(name.lastIndexOf("/") + 1);
  return keyOf(name.slice(0, -undo.length)) + undo;
}

/** Returns the key of the compensation of a step. */
export const compensationKey = (name: string) => name + undo;

// The last part of the name of a branch of a map is the number of the item.
function numberOf(branch: PipelineSpan, index: number): number {
  const number = Number(branch.name.slice(branch.name.lastIndexOf("/") + 1));
  return Number.isInteger(number) ? number : index + 1;
}

/** Returns how many branches are in each status, in the order in which they matter. */
export function countByStatus(branches: readonly BranchState[]): [StepStatus, number][] {
  const order: StepStatus[] = ["failed", "waiting", "running", "cancelled", "finished"];
  return order.map((status): [StepStatus, number] => [status, branches.filter((branch) => branch.status === status).length]).filter(([, count]) => count > 0);
}
