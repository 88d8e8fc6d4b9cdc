import type { Message } from "@ag-ui/client";
import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

// The messages that the details of spans read; a longer thread shows the content of its beginning only.
const mostMessages = 5_000;

/**
 * The messages of a thread, with those of subagents. settled changes when spans have ended, after which they have more
 * messages.
 */
export function useThreadMessages(threadId: string, settled: string) {
  const client = useClient();
  return useQuery({
    queryKey: ["messages", threadId, settled],
    queryFn: async ({ signal }) => {
      const messages: Message[] = [];
      for await (const message of client.messages(threadId, { limit: 200 }, { signal })) {
        messages.push(message);
        if (messages.length >= mostMessages) break;
      }
      return messages;
    },
    placeholderData: (last) => last,
    staleTime: 60_000,
  });
}

/** The arguments and the result of a tool call. */
export interface CallContent {
  arguments: string | undefined;
  result: Extract<Message, { role: "tool" }> | undefined;
}

/** Returns the arguments and the result of a tool call. */
export function callIn(messages: readonly Message[], toolCallId: string): CallContent {
  const call = messages.flatMap((m) => (m.role === "assistant" ? (m.toolCalls ?? []) : [])).find(({ id }) => id === toolCallId);
  const result = messages.findLast((m): m is Extract<Message, { role: "tool" }> => m.role === "tool" && m.toolCallId === toolCallId);
  return { arguments: call?.function.arguments, result };
}

/** Returns the messages of a model call: its reasoning, and its text with the tool calls. */
export function answerIn(messages: readonly Message[], messageId: string): { reasoning: Message[]; answer: Message | undefined } {
  const index = messages.findIndex(({ id }) => id === messageId);
  if (index < 0) return { reasoning: [], answer: undefined };
  let first = index;
  while (first > 0 && messages[first - 1]!.role === "reasoning") first--;
  return { reasoning: messages.slice(first, index), answer: messages[index] };
}
