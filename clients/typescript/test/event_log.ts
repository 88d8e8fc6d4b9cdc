// Event streams of the server, and what an agent shows of them.
import type { AgentSubscriber, BaseEvent, Message } from "@ag-ui/client";
import type { PerdureAgent, RunParameters, ConnectParameters } from "@perdure/client";
import type { TestContext } from "node:test";

export type Event = { type: string } & Record<string, unknown>;

export const frame = (event: Event, id?: string) => (id === undefined ? "" : `id: ${id}\n`) + `data: ${JSON.stringify(event)}\n\n`;

/** Returns the cursor of a position in the log. Cursors sort as text. */
export const cursor = (index: number) => String(index).padStart(6, "0") + "-log";

export const started = (runId: string, threadId = "t 1/ü"): Event => ({ type: "RUN_STARTED", threadId, runId });
export const finished = (runId: string, threadId = "t 1/ü"): Event => ({ type: "RUN_FINISHED", threadId, runId });
export const textMessage = (messageId: string, ...deltas: string[]): Event[] => [
  { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId, delta })),
  { type: "TEXT_MESSAGE_END", messageId },
];

/** Returns the frames of events, each with its cursor. */
export const log = (events: readonly Event[], from = 0) => events.map((event, i) => frame(event, cursor(from + i)));

/** Returns the frames after a cursor; without a cursor, all. */
export const framesAfter = (frames: readonly string[], lastEventId: string | undefined) =>
  lastEventId === undefined ? [...frames] : frames.slice(frames.findIndex((text) => text.startsWith(`id: ${lastEventId}\n`)) + 1);

/** The events and messages that an agent has received of a run or a thread. */
export interface Received {
  events: Event[];
  messages: Message[];
  /** Warnings and errors on the console. */
  console: string[];
  error?: unknown;
}

type Reading = { run: RunParameters } | { connect: ConnectParameters };

/** Reads a run or a thread with an agent to its end. Calls onEvent with each event. */
export async function read(
  t: TestContext,
  agent: PerdureAgent,
  what: Reading,
  onEvent: (event: Event) => void = () => {},
): Promise<Received> {
  const received: Received = { events: [], messages: [], console: [] };
  const listen = (...words: unknown[]) => void received.console.push(words.map(String).join(" "));
  const mocks = (["warn", "error"] as const).map((level) => t.mock.method(console, level, listen));
  const subscriber: AgentSubscriber = {
    onEvent: ({ event }: { event: BaseEvent }) => {
      const { timestamp: _, rawEvent: __, ...rest } = event as unknown as Event;
      received.events.push(rest as Event);
      onEvent(rest as Event);
    },
  };
  try {
    await ("run" in what ? agent.runAgent(what.run, subscriber) : agent.connectAgent(what.connect, subscriber));
  } catch (error) {
    received.error = error;
  } finally {
    mocks.forEach((mock) => mock.mock.restore());
  }
  received.messages = structuredClone(agent.messages);
  return received;
}

/** Waits until all callbacks that are due have been called. No time passes for timers. */
export const settled = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Resolves when the condition holds. The timeout of the test runner is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the number of timers that keep this process alive. */
export const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

/** Up to five attempts without pauses. */
export const immediateRetry = { attempts: 5, baseDelay: 0 };

/** Yields where and how to end a connection: at every byte, and around each frame in both ways. */
export function* ends(frames: readonly string[]): Generator<[at: number, end: "cut" | "clean"]> {
  const bytes = new TextEncoder().encode(frames.join("")).length;
  for (let at = 0; at < bytes; at++) yield [at, at % 2 === 0 ? "cut" : "clean"];
  for (let at = 0, i = 0; i < frames.length; at += new TextEncoder().encode(frames[i++]).length) {
    for (const near of [at - 1, at, at + 1]) if (near >= 0) yield [near, near % 2 === 0 ? "clean" : "cut"];
  }
}
