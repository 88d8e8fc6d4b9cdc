import type { OpenInterrupt, PendingMessage, PendingToolCall, ThreadStore } from "@perdure/client/react";
import { createContext, use } from "react";

/** What the parts of a transcript need. It changes only when something begins or stops to wait. */
export interface ConversationValue {
  store: ThreadStore;
  /** Open interrupts by the ID of their tool call. */
  interrupts: ReadonlyMap<string, OpenInterrupt>;
  /** Client tool calls that wait for their results, by ID. */
  toolCalls: ReadonlyMap<string, PendingToolCall>;
  /** Messages that wait for their turn, by ID. */
  pending: ReadonlyMap<string, PendingMessage>;
  /** Whether a run is active. */
  isRunning: boolean;
  /** Whether the thread waits for decisions before it can answer other messages. */
  isUndecided: boolean;
  /** The interrupt that the keys a, e and r decide. */
  firstInterrupt: string | undefined;
}

const Conversation = createContext<ConversationValue | undefined>(undefined);

/** Gives the parts of a transcript what they need. */
export const ConversationProvider = Conversation;

/** Returns what the parts of a transcript need. */
export function useConversation(): ConversationValue {
  const value = use(Conversation);
  if (!value) throw new Error("useConversation needs a ConversationProvider");
  return value;
}

const Editing = createContext<((messageId: string) => void) | undefined>(undefined);

/** Gives the messages of users what begins to edit one. Without a value, none can be edited now. */
export const EditingProvider = Editing;

/** Returns what begins to edit a message of a user, or undefined if none can be edited now. */
export const useEditing = () => use(Editing);
