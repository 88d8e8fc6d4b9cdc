import type { Frame } from "./frames.js";

/** How far a stream of runs has come, by the frames that were handed on. */
export class Progress {
  /** The run that has begun last. */
  run: string | undefined;
  /** That run has not ended. */
  open = false;
  /** The last thing that happened to a run, if anything did. */
  last: "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | undefined;

  observe({ lifecycle }: Frame): void {
    if (!lifecycle) return;
    this.last = lifecycle.type;
    this.open = lifecycle.type === "RUN_STARTED";
    if (this.open) this.run = lifecycle.runId;
  }

  /** The run has ended. A run that never began has no name in its RUN_ERROR. */
  ended(run: string): boolean {
    return this.last !== undefined && !this.open && (this.run === undefined || this.run === run);
  }

  /** What it will be behind these frames. */
  behind(frames: readonly Frame[]): Progress {
    const then = Object.assign(new Progress(), this);
    frames.forEach((frame) => then.observe(frame));
    return then;
  }
}
