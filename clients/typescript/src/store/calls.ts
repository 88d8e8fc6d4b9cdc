type Event = { type: string } & Record<string, unknown>;

/** Whether the agent of the active run calls its model or tools. The end of a step comes with the next step, so it tells nothing. */
export class Calls {
  private step = "";
  private hasAnswered = false; // whether the model has ended a part of its answer, and begun none since
  private readonly unanswered = new Set<unknown>(); // tool calls

  /** Applies an event of the thread. */
  observe({ type, stepName, toolCallId, subagentRunId }: Event): void {
    if (subagentRunId !== undefined) return;
    if (type === "RUN_STARTED" || type === "RUN_FINISHED" || type === "RUN_ERROR") this.begin("");
    if (type === "STEP_STARTED") this.begin(String(stepName).replace(/^.*\//, ""));
    if (type === "TEXT_MESSAGE_START" || type === "TOOL_CALL_START") this.hasAnswered = false;
    if (type === "TEXT_MESSAGE_END" || type === "TOOL_CALL_END") this.hasAnswered = true;
    if (type === "TOOL_CALL_START") this.unanswered.add(toolCallId);
    if (type === "TOOL_CALL_RESULT") this.unanswered.delete(toolCallId);
  }

  /** Whether a call is under way. A run that pauses ends it first. */
  get isActive(): boolean {
    return this.step === "model" ? !this.hasAnswered : this.step === "tools" && this.unanswered.size > 0;
  }

  private begin(step: string): void {
    this.step = step;
    this.hasAnswered = false;
    if (step === "") this.unanswered.clear();
  }
}
