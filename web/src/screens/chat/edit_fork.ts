import type { Message } from "@ag-ui/client";
import type { ContentPart, PerdureClient } from "@perdure/client";
import { runInput } from "./run_input";
import { newThreadID } from "./starting";

/** A message that is sent in a fork of its thread. */
export interface ForkedMessage {
  threadId: string;
  messages: readonly Message[];
  /** The message that the new one replaces. */
  messageId: string;
  agent: string;
  content: string | ContentPart[];
  /** The revision of the agent, or "" for the current one. */
  revision: string;
}

/** Forks a thread before a message, and sends another message there. Returns the ID of the new thread. */
export async function sendInFork(client: PerdureClient, { threadId, messages, messageId, agent, content, revision }: ForkedMessage): Promise<string> {
  const at = messages.findIndex(({ id }) => id === messageId);
  const before = messages.slice(0, at).findLast((message) => !("subagentRunId" in message && message.subagentRunId !== undefined));
  const fork = newThreadID();
  if (before !== undefined) {
    const writer = await runThatWrote(client, threadId, before.id);
    await client.fork(writer.threadId, writer.runId, fork);
  }
  const { revision: named, ...input } = runInput(agent, revision);
  await client.startRun(agent, { ...input, threadId: fork, messages: [{ id: newThreadID(), role: "user", content }] }, { revision: named });
  return fork;
}

interface Writer {
  threadId: string;
  runId: string;
}

const mostRuns = 20;

// The messages do not name their runs, but the events of a run name its messages. A fork has messages of the thread from which
// it was forked.
async function runThatWrote(client: PerdureClient, threadId: string, messageId: string): Promise<Writer> {
  for (let thread: string | undefined = threadId; thread !== undefined; ) {
    const { items } = await client.runs(thread, { limit: mostRuns });
    for (const runId of new Set(items.map((run) => run.runId))) {
      if (await hasWritten(client, thread, runId, messageId)) return { threadId: thread, runId };
    }
    thread = (await client.thread(thread)).forkedFrom?.threadId;
  }
  throw new Error(`None of the last ${mostRuns} runs has written the message before this one, so the thread cannot be forked there.`);
}

async function hasWritten(client: PerdureClient, threadId: string, runId: string, messageId: string): Promise<boolean> {
  for await (const { event } of client.loggedEvents(threadId, { runId })) {
    if (event.messageId === messageId || event.parentMessageId === messageId) return true;
  }
  return false;
}
