import type { Frame } from "./sse_frames.js";

/** The state of the runs in a stream, by the frames that the agent has received. */
export class Progress {
  /** The ID of the last run that has begun. */
  run: string | undefined;
  /** Whether that run is active. */
  open = false;
  /** The type of the last event that began or ended a run. */
  last: "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | undefined;

  observe({ lifecycle }: Frame): void {
    if (!lifecycle) return;
    this.last = lifecycle.type;
    this.open = lifecycle.type === "RUN_STARTED";
    if (this.open) this.run = lifecycle.runId;
  }

  /** Reports whether the run has ended. The RUN_ERROR of a run that never began has no run ID. */
  ended(run: string): boolean {
    return this.last !== undefined && !this.open && (this.run === undefined || this.run === run);
  }

  /** Returns the progress after these frames. */
  after(frames: readonly Frame[]): Progress {
    const progress = Object.assign(new Progress(), this);
    frames.forEach((frame) => progress.observe(frame));
    return progress;
  }
}
