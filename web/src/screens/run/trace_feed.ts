import { ProblemError } from "@perdure/client";
import { useEffect, useState } from "react";
import { authorization } from "../../session";
import { apiURL } from "../../settings";
import type { Span, Trace, TracedRun } from "./trace";

type TraceEvent =
  | { type: "trace"; trace: Trace }
  | { type: "spans"; run: TracedRun; spans: Span[] }
  | { type: "end" };

/** A trace that follows its run. */
export interface TraceFeed {
  trace?: Trace;
  error?: unknown;
  /** Whether the trace follows the run now. */
  isLive: boolean;
}

const firstPause = 500;
const longestPause = 15_000;

/**
 * The trace of a run. While the run is active it follows the stream of the trace, unless the page is hidden: a browser opens
 * few connections to a host.
 */
export function useTrace(threadId: string, runId: string): TraceFeed & { reload: () => void } {
  const [feed, setFeed] = useState<TraceFeed>({ isLive: false });
  const [generation, setGeneration] = useState(0);
  useEffect(() => {
    const follower = new TraceFollower(threadId, runId, (change) => setFeed((last) => ({ ...last, ...change })));
    const follow = () => (document.hidden ? follower.stop() : follower.start());
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      follower.stop();
    };
  }, [threadId, runId, generation]);
  return { ...feed, reload: () => setGeneration(generation + 1) };
}

// Follows a trace, and connects again when the connection is lost. A new connection begins with the whole trace.
class TraceFollower {
  private running: AbortController | undefined;
  private trace: Trace | undefined;
  private frame = 0;

  constructor(
    private readonly threadId: string,
    private readonly runId: string,
    private readonly report: (change: Partial<TraceFeed>) => void,
  ) {}

  start(): void {
    if (this.running) return;
    const running = (this.running = new AbortController());
    void this.follow(running.signal);
  }

  stop(): void {
    this.running?.abort();
    this.running = undefined;
    cancelAnimationFrame(this.frame);
  }

  private async follow(signal: AbortSignal): Promise<void> {
    for (let pause = firstPause; !signal.aborted; pause = Math.min(pause * 2, longestPause)) {
      try {
        if (await this.read(signal)) return;
        pause = firstPause;
      } catch (error) {
        if (signal.aborted) return;
        this.report({ isLive: false, error });
        if (error instanceof ProblemError && error.status < 500 && error.status !== 429) return;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  // Returns whether the run has ended.
  private async read(signal: AbortSignal): Promise<boolean> {
    const path = `/v1/threads/${encodeURIComponent(this.threadId)}/runs/${encodeURIComponent(this.runId)}/trace`;
    const response = await fetch(apiURL + path, { headers: { ...authorization(), Accept: "text/event-stream" }, signal });
    if (!response.ok || !response.body) {
      const problem = (await response.json().catch(() => ({}))) as Record<string, unknown>;
      throw new ProblemError({ code: `http_${response.status}`, ...problem, status: response.status });
    }
    for await (const data of eventsOf(response.body)) {
      const event = JSON.parse(data) as TraceEvent;
      if (event.type === "end") {
        this.show({ isLive: false });
        return true;
      }
      this.trace = event.type === "trace" ? event.trace : merged(this.trace!, event);
      this.show({ isLive: true });
    }
    return false;
  }

  // Several changes of a frame of the screen are one.
  private show(change: { isLive: boolean }): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.report({ ...change, error: undefined, ...(this.trace && { trace: this.trace }) }));
  }
}

function merged(trace: Trace, { run, spans }: { run: TracedRun; spans: Span[] }): Trace {
  const byId = new Map(trace.spans.map((span) => [span.id, span]));
  for (const span of spans) byId.set(span.id, span);
  return { ...trace, ...run, spans: [...byId.values()] };
}

// Yields the data of server-sent events.
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const frames = (text + value).split("\n\n");
      text = frames.pop()!;
      for (const frame of frames) {
        const data = frame.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
        if (data.length > 0) yield data.join("\n");
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
