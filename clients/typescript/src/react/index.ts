/**
 * Hooks for React 18 and newer. Components with equal options share a store.
 *
 * @packageDocumentation
 */
import { useSyncExternalStore } from "react";
import type { PerdureClient } from "../client.js";
import type { PendingToolCall } from "../interrupts.js";
import {
  type InboxFilter,
  type InboxSnapshot,
  type InboxStore,
  inboxStore,
  type OpenInterrupt,
  type RunSnapshot,
  type ThreadSnapshot,
  type ThreadStore,
  type ThreadStoreOptions,
  threadStore,
} from "../store/index.js";

export type {
  ConnectionStatus,
  InboxFilter,
  InboxSnapshot,
  InboxStore,
  OpenInterrupt,
  PendingMessage,
  PendingToolCall,
  RunSnapshot,
  SendOptions,
  Subagent,
  ThreadSnapshot,
  ThreadStatus,
  ThreadStore,
  ThreadStoreOptions,
} from "../store/index.js";

/** A snapshot of a thread and its store, which has the actions: `store.send("Hello")`. */
export type ThreadHook<State> = ThreadSnapshot<State> & { store: ThreadStore<State> };

/**
 * Shows a thread: messages, state, run, interrupts, subagents and connection. Components with equal options share one store, and so
 * one stream.
 */
export function useThread<State = unknown>(client: PerdureClient, options: ThreadStoreOptions): ThreadHook<State> {
  const store = threadStore<State>(client, options);
  return { ...useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot), store };
}

/** Shows the active or last run of a thread. Renders only when the run changes. */
export function useRun(client: PerdureClient, options: ThreadStoreOptions): RunSnapshot & { store: ThreadStore } {
  const store = threadStore(client, options);
  const run = useSyncExternalStore(store.subscribe, () => store.getSnapshot().run, () => store.getServerSnapshot().run);
  return { ...run, store };
}

/** The interrupts and the client tool calls of a thread that wait for this user. */
export interface InterruptsHook {
  /** Open approvals, questions and limits. */
  interrupts: readonly OpenInterrupt[];
  /** Client tool calls that wait for their results. */
  toolCalls: readonly PendingToolCall[];
  /** The store, which has the actions. */
  store: ThreadStore;
}

/** Shows what a thread waits for. Renders only when that changes. */
export function useInterrupts(client: PerdureClient, options: ThreadStoreOptions): InterruptsHook {
  const store = threadStore(client, options);
  const { getSnapshot, getServerSnapshot } = store;
  const interrupts = useSyncExternalStore(store.subscribe, () => getSnapshot().interrupts, () => getServerSnapshot().interrupts);
  const toolCalls = useSyncExternalStore(store.subscribe, () => getSnapshot().toolCalls, () => getServerSnapshot().toolCalls);
  return { interrupts, toolCalls, store };
}

/** Shows the open approvals of all threads, or of those that the filter selects. */
export function useInbox(client: PerdureClient, filter: InboxFilter = {}): InboxSnapshot & { store: InboxStore } {
  const store = inboxStore(client, filter);
  return { ...useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot), store };
}
