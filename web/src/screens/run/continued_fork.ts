import type { Message } from "@ag-ui/client";
import type { PerdureClient } from "@perdure/client";
import { newThreadID } from "../chat/starting";

/** A fork whose agent continues at once. */
export interface ContinuedFork {
  threadId: string;
  runId: string;
  agent: string;
  /** The cursor of the fork point. */
  at: string;
  /** The revision of the agent; absent = the current one. */
  revision?: string | undefined;
  /** Members of the state to set; null removes one. */
  change?: Readonly<Record<string, unknown>> | undefined;
}

/** Forks a run, and has the agent continue in the fork without a message. Returns the new thread and its run. */
export async function continueInFork(client: PerdureClient, { threadId, runId, agent, at, revision, change }: ContinuedFork): Promise<{ threadId: string; runId: string }> {
  const fork = await client.fork(threadId, runId, undefined, { at });
  const state = change && { state: stateAfter(await client.state(fork), change) };
  const run = { threadId: fork, runId: await client.startRun(agent, { threadId: fork, ...state }, { revision }) };
  for await (const _ of client.events(fork, { runId: run.runId })) break; // after its first event, a run has a trace
  return run;
}

/** A run that begins again in a new thread. */
export interface Restart extends Omit<ContinuedFork, "at"> {
  /** The messages with which the run began. */
  input: readonly Message[];
  /** The run before it, whose end has the conversation to which the messages belong; absent = the run was the first one. */
  previous?: string | undefined;
}

/**
 * Starts a run over: with the same input, and the conversation before it. A first run gets the state that its thread has now,
 * without the outputs of steps. Returns the new thread and its run.
 */
export async function startOver(client: PerdureClient, { threadId, agent, input, previous, revision, change = {} }: Restart): Promise<{ threadId: string; runId: string }> {
  const thread = previous === undefined ? newThreadID() : await client.fork(threadId, previous);
  const state = stateAfter(await client.state(previous === undefined ? threadId : thread), change);
  const run = { threadId: thread, runId: await client.startRun(agent, { threadId: thread, messages: [...input], state }, { revision }) };
  for await (const _ of client.events(thread, { runId: run.runId })) break; // after its first event, a run has a trace
  return run;
}

// The outputs of steps are not part of the state of an input.
function stateAfter(state: unknown, change: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { "perdure.steps": _, ...own } = (typeof state === "object" && state !== null ? state : {}) as Record<string, unknown>;
  return Object.fromEntries(Object.entries({ ...own, ...change }).filter(([, value]) => value !== null));
}
