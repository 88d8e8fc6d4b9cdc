import type { ForkPoint } from "@perdure/client";
import { durationText } from "../../components/time";
import type { Span, Trace, Tree, TreeNode } from "./trace";

/** Returns the last place before a span at which the run can be forked; undefined = nothing has finished before the span. */
export function pointBefore(tree: Tree, span: Span, points: readonly ForkPoint[]): ForkPoint | undefined {
  const before = points.filter(({ kind, at }) => kind !== "end" && Date.parse(at) <= Date.parse(span.startedAt));
  // Steps that end in the same millisecond are told apart by their names.
  const step = outerStep(tree.byId.get(span.id))?.span.stepName;
  const own = before.findIndex(({ kind, name }) => kind === "step" && name === step);
  return own < 0 ? before.at(-1) : before[own - 1];
}

/** Returns the name of the step with which a pipeline continues after a fork point; undefined = it is unknown. */
export function stepAfter(tree: Tree, { kind, name }: ForkPoint): string | undefined {
  if (kind !== "step") return undefined;
  const steps = tree.roots.flatMap(({ children }) => children).filter(({ span }) => span.kind === "step");
  const index = steps.findLastIndex(({ span }) => span.stepName === name);
  return index < 0 ? undefined : steps[index + 1]?.span.stepName;
}

/** Returns the text of a fork point in a list. */
export function pointText({ kind, name, at }: ForkPoint, { startedAt }: Trace): string {
  const offset = durationText(Math.max(0, Date.parse(at) - Date.parse(startedAt)));
  return kind === "end" ? `At the end of the run, ${offset}` : `After the ${kind} ${name ? `“${name}”` : ""}, ${offset}`;
}

// The step of the run's own pipeline that contains a span.
function outerStep(node: TreeNode | undefined): TreeNode | undefined {
  let found: TreeNode | undefined;
  for (let at = node; at !== undefined; at = at.parent) if (at.span.kind === "step") found = at;
  return found;
}
