import type { Restart } from "./continued_fork";
import { partsOf } from "./input_output";
import { useRuns } from "./run_trail";
import { useThreadMessages } from "./thread_messages";
import type { Trace } from "./trace";

/** With what a run can start over; undefined = it began with a decision, or its messages are not known. */
export function useRestart(trace: Trace): Pick<Restart, "input" | "previous"> | undefined {
  const { data: messages } = useThreadMessages(trace.threadId, trace.status);
  const { data: runs = [] } = useRuns(trace.threadId);
  const index = runs.findIndex(({ runId }) => runId === trace.runId);
  if (messages === undefined || index < 0 || trace.continues !== undefined) return undefined;
  const { input } = partsOf(messages, trace, index === runs.length - 1);
  return input.length === 0 ? undefined : { input, previous: runs[index - 1]?.runId };
}
