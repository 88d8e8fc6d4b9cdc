// Streams as the server records them, and what an agent makes of them.
import type { AgentSubscriber, BaseEvent, Message } from "@ag-ui/client";
import type { PerdureAgent, RunParameters, ConnectParameters } from "@perdure/client";
import type { TestContext } from "node:test";

export type Event = { type: string } & Record<string, unknown>;

export const frame = (event: Event, id?: string) => (id === undefined ? "" : `id: ${id}\n`) + `data: ${JSON.stringify(event)}\n\n`;

/** A cursor: its text order is the order of the log. */
export const cursor = (index: number) => String(index).padStart(6, "0") + "-log";

export const started = (runId: string, threadId = "t 1/ü"): Event => ({ type: "RUN_STARTED", threadId, runId });
export const finished = (runId: string, threadId = "t 1/ü"): Event => ({ type: "RUN_FINISHED", threadId, runId });
export const says = (messageId: string, ...deltas: string[]): Event[] => [
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta })),
  { type: "TEXT_MESSAGE_END", messageId },
];

/** The frames of a log, each with its cursor. */
export const log = (events: readonly Event[], from = 0) => events.map((event, i) => frame(event, cursor(from + i)));

/** What is behind a cursor; all without one. */
export const behind = (frames: readonly string[], lastEventId: string | undefined) =>
  lastEventId === undefined ? [...frames] : frames.slice(frames.findIndex((text) => text.startsWith(`id: ${lastEventId}\n`)) + 1);

/** Everything that an agent showed of a run or a thread. */
export interface Seen {
  events: Event[];
  messages: Message[];
  /** What was said on the console: nobody should have to. */
  console: string[];
  error?: unknown;
}

type Watched = { run: RunParameters } | { connect: ConnectParameters };

/** Watches a run or a thread with an agent; onEvent is called with each event. */
export async function watch(
  t: TestContext,
  agent: PerdureAgent,
  what: Watched,
  onEvent: (event: Event) => void = () => {},
): Promise<Seen> {
  const seen: Seen = { events: [], messages: [], console: [] };
  const listen = (...words: unknown[]) => void seen.console.push(words.map(String).join(" "));
  const mocks = (["warn", "error"] as const).map((level) => t.mock.method(console, level, listen));
  const subscriber: AgentSubscriber = {
    onEvent: ({ event }: { event: BaseEvent }) => {
      const { timestamp: _, rawEvent: __, ...rest } = event as unknown as Event;
      seen.events.push(rest as Event);
      onEvent(rest as Event);
    },
  };
  try {
    await ("run" in what ? agent.runAgent(what.run, subscriber) : agent.connectAgent(what.connect, subscriber));
  } catch (error) {
    seen.error = error;
  } finally {
    mocks.forEach((mock) => mock.mock.restore());
  }
  seen.messages = structuredClone(agent.messages);
  return seen;
}

/** Lets all that is ready happen, without waiting for any time to pass. */
export const settled = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Resolves when the condition holds; the runner's timeout is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** The timers that keep this process alive. */
export const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

/** Retries at once, and a few times. */
export const hasty = { attempts: 5, baseDelay: 0 };

/** Where to end a connection, and how: at every byte, and around each frame in both ways. */
export function* ends(frames: readonly string[]): Generator<[at: number, end: "cut" | "clean"]> {
  const bytes = new TextEncoder().encode(frames.join("")).length;
  for (let at = 0; at < bytes; at++) yield [at, at % 2 === 0 ? "cut" : "clean"];
  for (let at = 0, i = 0; i < frames.length; at += new TextEncoder().encode(frames[i++]).length) {
    for (const near of [at - 1, at, at + 1]) if (near >= 0) yield [near, near % 2 === 0 ? "clean" : "cut"];
  }
}
