import type { ContentPart } from "@perdure/client";
import type { ThreadHook } from "@perdure/client/react";
import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { sendInFork } from "./edit_fork";
import { runInput, withRevision } from "./run_input";

/** A change of the conversation. */
export interface Change {
  messageId?: string;
  /** Absent: the last message is answered again. */
  content?: string | ContentPart[];
  isFork?: boolean;
}

/** Returns what edits a message, or has one answered again, in the thread or in a fork. */
export function useChanges({ store, threadId, messages }: ThreadHook<unknown>, agent: string, revision: string, onDone: () => void) {
  const client = useClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: async ({ messageId, content, isFork }: Change) => {
      const options = runInput(agent, revision);
      if (content === undefined) return store.regenerate(options);
      if (!isFork) return store.edit(messageId!, content, options);
      navigate(withRevision(paths.thread(await sendInFork(client, { threadId, messages, messageId: messageId!, agent, content, revision })), revision));
      return undefined;
    },
    onSuccess: onDone,
  });
}
