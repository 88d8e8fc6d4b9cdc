import { AgentIcon, ForkIcon, ModelIcon, PlayIcon, ScheduleIcon, StepIcon, ToolIcon, TurnIcon, UndoIcon, WaitIcon } from "../../components/icons";
import type { SpanKind } from "./trace";

const icons: Record<SpanKind, () => React.JSX.Element> = {
  run: PlayIcon,
  turn: TurnIcon,
  step: StepIcon,
  model: ModelIcon,
  tool: ToolIcon,
  interrupt: WaitIcon,
  subagent: AgentIcon,
  branch: ForkIcon,
  wait: ScheduleIcon,
  compensation: UndoIcon,
};

/** The nouns for the kinds of spans. */
export const kindNames: Record<SpanKind, string> = {
  run: "run",
  turn: "turn",
  step: "step",
  model: "model call",
  tool: "tool call",
  interrupt: "wait",
  subagent: "subagent",
  branch: "branch",
  wait: "wait",
  compensation: "compensation",
};

/** The icon of a kind of span. */
export function SpanIcon({ kind }: { kind: SpanKind }) {
  const Found = icons[kind] ?? StepIcon;
  return <Found />;
}
