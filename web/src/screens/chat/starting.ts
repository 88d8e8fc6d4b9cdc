import type { ContentPart, PerdureClient } from "@perdure/client";
import { threadStore } from "@perdure/client/store";
import { runInput } from "./run_input";

/** A thread whose first message this page sends. */
export interface StartingThread {
  agent: string;
  /** Resolves when the first run is durable. */
  started: Promise<string>;
}

const starting = new Map<string, StartingThread>();

/** Returns the thread that this page has begun, if it is one. */
export const startingThread = (threadId: string): StartingThread | undefined => starting.get(threadId);

/** Begins a thread with a revision of an agent, or "" for the current one, and returns its ID at once. */
export function startThread(client: PerdureClient, agent: string, content: string | ContentPart[], revision: string): string {
  const threadId = newThreadID();
  const started = threadStore(client, { threadId, agent }).send(content, runInput(agent, revision));
  started.catch(() => {}); // the screen of the thread shows the error
  starting.set(threadId, { agent, started });
  return threadId;
}

/** Returns a new ID of a thread, which also pages without TLS can make. */
export function newThreadID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return "chat-" + [...bytes].map((byte) => byte.toString(36).padStart(2, "0")).join("").slice(0, 16);
}
