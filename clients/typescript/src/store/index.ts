/**
 * Stores for user interfaces without React: immutable snapshots, and actions.
 *
 * @packageDocumentation
 */
export type { PendingToolCall } from "../interrupts.js";
export { ExternalStore } from "./external_store.js";
export { InboxStore } from "./inbox_store.js";
export type { InboxFilter, InboxSnapshot } from "./inbox_store.js";
export { inboxStore, threadStore } from "./registry.js";
export type { Subagent } from "./subagents.js";
export { ThreadStore } from "./thread_store.js";
export type {
  ConnectionStatus,
  OpenInterrupt,
  PendingMessage,
  RunSnapshot,
  SendOptions,
  ThreadSnapshot,
  ThreadStatus,
  ThreadStoreOptions,
} from "./thread_store.js";
