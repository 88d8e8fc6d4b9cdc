import { caseTitle } from "./pipeline_layout";
import { compensationKey, countByStatus, type PipelineStates, type PipelineStep, type StepState } from "./pipeline_states";

/** Properties of a PipelineOutline. */
export interface PipelineOutlineProps {
  steps: readonly PipelineStep[];
  states: PipelineStates | undefined;
  /** What is said of steps that the run has passed without them. */
  skippedText: string;
}

/** The steps of a pipeline as a nested list with their states, for screen readers. */
export function PipelineOutline(props: PipelineOutlineProps) {
  return (
    <div className="visually-hidden">
      <Sequence label="Steps" {...props} />
    </div>
  );
}

function Sequence({ label, steps, ...rest }: PipelineOutlineProps & { label?: string }) {
  return (
    <ol aria-label={label}>
      {steps.map((step) => <Item key={step.name} step={step} {...rest} />)}
    </ol>
  );
}

function Item({ step, states, skippedText }: Omit<PipelineOutlineProps, "steps"> & { step: PipelineStep }) {
  const { name = "", kind, steps = [], cases = [], onError = [] } = step;
  const state = states?.state(name);
  const undone = states?.state(compensationKey(name)).status;
  return (
    <li>
      {name}, {describe(step)}
      {state && `: ${state.status === "skipped" ? skippedText : stateText(step, state, states!)}`}
      {step.compensate && (undone === undefined || undone === "pending" || undone === "skipped" ? "; has a compensation" : `; compensation: ${undone}`)}
      {steps.length > 0 && <Sequence steps={steps} states={kind === "map" ? undefined : states} skippedText={skippedText} />}
      {cases.length > 0 && <ol>{cases.map((one, i) => <li key={i}>{caseTitle(step, i)}:<Sequence steps={one.steps} states={states} skippedText={skippedText} /></li>)}</ol>}
      {onError.length > 0 && <>; after a failure:<Sequence steps={onError} states={states} skippedText={skippedText} /></>}
    </li>
  );
}

function describe({ kind, agent, tool, isConditional, max }: PipelineStep): string {
  const what = { agent: agent === undefined ? "agent" : `agent ${agent}`, tool: `tool ${tool}`, approve: "approval", set: "change of the state", steps: "group", loop: `loop of at most ${max} rounds` }[kind as string] ?? kind;
  return isConditional ? `${what}, conditional` : what;
}

function stateText(step: PipelineStep, state: StepState, states: PipelineStates): string {
  const parts: string[] = [state.status];
  if (step.kind === "map") parts.push(...countByStatus(states.branches(state)).map(([status, count]) => `${count} ${status}`));
  if (step.kind === "loop" && state.span) parts.push(`round ${states.round(step.steps ?? [], state)}`);
  else if (state.times > 1) parts.push(`began ${state.times} times`);
  if (state.span?.otherRun !== undefined) parts.push(`in ${state.span.otherRun}`);
  return parts.join(", ");
}
